"""Lines that public MXNet scripts print, and what is read from them.

The lines are made by the format strings of the named scripts: `mxnet/` is apache/mxnet's example/ of 0.9 to 1.9,
`gluoncv/` and `gluonnlp/` are scripts/ of these projects, the rest other public repositories.
"""

import math

import pytest

from mxnet_operator.readers.log_figures import SPEED, epoch_alone, rank_in, read_line

FIGURES = """\
# mx.module.fit
INFO:root:Epoch[3] Train-accuracy=0.363281 => epoch: Train-accuracy=0.363281
Epoch[3] Validation-top_k_accuracy_5=1e-3 => epoch: Validation-top_k_accuracy_5=0.001
Epoch[3] Time cost=190.507 => epoch: Time cost=190.507
# mxnet/image-classification
2018 Node[0] Epoch[3] Train-perplexity=187.4 => epoch: Train-perplexity=187.4
# mx.callback.Speedometer
INFO:root:Epoch[3] Batch [0-20]\tSpeed: 159.17 samples/sec\taccuracy=0.125\tcross-entropy=2.410384\
   => epoch batch 20: Speed=159.17, accuracy=0.125, cross-entropy=2.410384
# mx.callback.Speedometer 0.9
Epoch[3] Batch [20]\tSpeed: 1910.41 samples/sec\tTrain-accuracy=0.2 => epoch batch 20: Speed=1910.41, Train-accuracy=0.2
# mx.callback.Speedometer, no metric
Iter[3] Batch [20]\tSpeed: 12.00 samples/sec => epoch batch 20: Speed=12
# mxnet/sparse/factorization_machine
INFO:root:Epoch[3] Batch [20]\tSpeed: 9121.1 samples/sec\tlog_loss=0.612\tauc=0.71\
   => epoch batch 20: Speed=9121.1, log_loss=0.612, auc=0.71
INFO:root:epoch 3, eval log loss = 0.5 => epoch: Validation-log loss=0.5
# mxnet/sparse/matrix_factorization
epoch 3, eval MSE = 0.1 => epoch: Validation-MSE=0.1
# mxnet/sparse/wide_deep
epoch 3, accuracy = 0.8 => epoch: accuracy=0.8
# mxnet/module/mnist_mlp
epoch 003: accuracy=0.9 => epoch: accuracy=0.9
# mxnet/fcn-xs
        --->Epoch[3] Train-acc=0.5 => epoch: Train-accuracy=0.5
# mxnet/speech-demo
Epoch[3] Dev-Acc_exclude_padding=0.5 => epoch: Validation-Acc_exclude_padding=0.5
# mxnet/speech_recognition
Epoch[3] val cer=0.21 (210 / 1000) => epoch: Validation-cer=0.21
# mxnet/svrg_module
Epoch[3] Train cost=0.5 => epoch: Train-cost=0.5
# mxnet/capsnet
Epoch[3] val acc: 0.9 loss: 0.05 recon_err: 0.03 => epoch: Validation-accuracy=0.9, loss=0.05, recon_err=0.03
# mxnet/recommenders
Epoch [3], Training RMSE 1.2, Test RMSE 1.3 => epoch: Train-RMSE=1.2, Test-RMSE=1.3
# mxnet/restricted-boltzmann-machine
Epoch 3 completed with test log-likelihood -85.3 and train log-likelihood -84.2\
   => epoch: Test-log-likelihood=-85.3, Train-log-likelihood=-84.2
# mxnet/multivariate_time_series
Metrics: Epoch 3, Validation {'RAE': 0.5, 'RSE': 0.6, 'CORR': 0.1}\
   => epoch: Validation-RAE=0.5, Validation-RSE=0.6, Validation-CORR=0.1
# mxnet/rnn/word_lm
Iter[3] Train loss:\t5.12, Perplexity: 167.3 => epoch: Train-loss=5.12, Perplexity=167.3
# mxnet/rnn/large_word_lm
Iter[3] Batch [20] \tloss 5.1, ppl 164.0 => epoch batch 20: loss=5.1, perplexity=164
Iter[3]\t\t CE loss 5.1, ppl 164.0. Eval duration = 3.1 seconds => epoch: CE loss=5.1, perplexity=164
# mxnet/reinforcement-learning/dqn
Epoch:3 Avg Reward: 1.5, Avg Q Score:0.3 => epoch: Reward=1.5, Q Score=0.3
# mxnet/gan
epoch: 3 iter: 20 metric: ('accuracy', 0.98) ('binary_loss', 0.1) => epoch batch 20: accuracy=0.98, binary_loss=0.1
# mxnet/distributed_training-horovod
Epoch[3] Rank[1]\tValidation-accuracy=0.7\tValidation-top_k=0.9 => epoch: Validation-accuracy=0.7, Validation-top_k=0.9
Epoch[3]\tTrain: accuracy=0.8\tValidation: accuracy=0.7 => epoch: Train-accuracy=0.8, Validation-accuracy=0.7
# mxnet/gluon/mnist
[Epoch 3 Batch 20] Training: accuracy=0.5 => epoch batch 20: Train-accuracy=0.5
[Epoch 3] Validation: accuracy=0.75 => epoch: Validation-accuracy=0.75
# mxnet/gluon/super_resolution
training mse at epoch 3: mse=0.093 => epoch: Train-mse=0.093
# mxnet/gluon/embedding_learning
[Epoch 3, Iter 20] training loss=0.5 => epoch batch 20: Train-loss=0.5
# mxnet/gluon/lipnet
[Train] epoch:3 iter:20 loss:0.5123 => epoch batch 20: Train-loss=0.5123
# mxnet/gluon/dc_gan
INFO:root:discriminator loss = 0.61, generator loss = 2.5, binary training acc = 0.9 at iter 20 epoch 3\
   => epoch batch 20: discriminator loss=0.61, generator loss=2.5, Train-accuracy=0.9
# mxnet/gluon/lstm_crf
Epoch [3], Negative Log Likelihood 3.21 => epoch: Negative Log Likelihood=3.21
# mxnet/gluon/house_prices
Epoch 3, train loss: 0.12 => epoch: Train-loss=0.12
# mxnet/gluon/audio
Epoch 3. Loss: 0.5 Train accuracy : 0.9 => epoch: loss=0.5, Train-accuracy=0.9
# mxnet/gluon/word_language_model
[Epoch 3] time cost 12.34s, valid loss 5.23, valid ppl 187.20\
   => epoch: Time cost=12.34, Validation-loss=5.23, Validation-perplexity=187.2
# gluoncv/classification/cifar
INFO:root:[Epoch 3] train=0.912 val=0.887 loss=0.301 time: 21.4\
   => epoch: Train=0.912, Validation=0.887, loss=0.301, Time cost=21.4
# gluoncv/classification/imagenet
[Epoch 3] validation: err-top1=0.31 err-top5=0.12 => epoch: Validation-err-top1=0.31, Validation-err-top5=0.12
[Epoch 3] speed: 812 samples/sec\ttime cost: 9.5 => epoch: Speed=812, Time cost=9.5
# gluoncv/classification/finetune
[Epoch 3] Train-acc: 0.812, loss: 0.5 | Val-acc: 0.7 | time: 9.1\
   => epoch: Train-accuracy=0.812, loss=0.5, Validation-accuracy=0.7, Time cost=9.1
# gluoncv/action-recognition
Epoch[003] Batch [0020]/[0400]\tSpeed: 61.2 samples/sec\t accuracy=12.5\t loss=3.2\t lr=0.01\
   => epoch batch 20: Speed=61.2, accuracy=12.5, loss=3.2
# gluoncv/detection/ssd
[Epoch 3][Batch 20], Speed: 31.2 samples/sec, CrossEntropy=2.1, SmoothL1=1.3\
   => epoch batch 20: Speed=31.2, CrossEntropy=2.1, SmoothL1=1.3
# gluoncv/detection/faster_rcnn
[Epoch 3] Training cost: 34.2, Speed: 4.2 samples/sec, RPN_Conf=0.3,RPN_SmoothL1=0.2\
   => epoch: Time cost=34.2, Speed=4.2, RPN_Conf=0.3, RPN_SmoothL1=0.2
# gluoncv/detection/ssd
[Epoch 3] mAP 0.5 higher than current best 0.4 saving to a.params => epoch: mAP=0.5
# gluoncv/segmentation
Epoch 3 iteration 0020/0100: training loss 0.312 => epoch batch 20: Train-loss=0.312
# gluoncv/tracking
Epoch 3 iteration 0020/0100: loc loss 0.3, cls loss 0.2, => epoch batch 20: loc loss=0.3, cls loss=0.2
# gluoncv/pose
Epoch[3]\t\tSpeed: 812 samples/sec over 12 secs\tloss=0.5 => epoch: Speed=812, Time cost=12, loss=0.5
# gluoncv/gan/wgan
[3/10][20/100][2000] Loss_D: 0.5 Loss_G: 1.2 Loss_D_real: 0.1 Loss_D_fake 0.2\
   => epoch batch 20: Loss_D=0.5, Loss_G=1.2, Loss_D_real=0.1, Loss_D_fake=0.2
# gluoncv/gan/srgan
Epoch 3:  mse: 0.00120000 => epoch: mse=0.0012
# gluonnlp/bert
INFO:root:[Epoch 3 Batch 20/100] loss=0.5, lr=0.0000500, metrics:accuracy:0.75\
   => epoch batch 20: loss=0.5, accuracy=0.75
# gluonnlp/machine_translation
[Epoch 3 Batch 20/100] loss=0.5, ppl=1.6, gnorm=0.2, throughput=12.31K wps, wc=2.11K\
   => epoch batch 20: loss=0.5, perplexity=1.6
[Epoch 3] valid Loss=3.8123, valid ppl=45.2512, valid bleu=12.31\
   => epoch: Validation-loss=3.8123, Validation-perplexity=45.2512, Validation-bleu=12.31
# gluonnlp/language_model
Epoch 3 took 12.31 seconds. => epoch: Time cost=12.31
# gluonnlp/intent_cls_slot_labeling
[Epoch 3]    dev intent/slot = 0.1/0.2, slot f1 = 90.1, intent acc = 95.0\
   => epoch: Validation-slot f1=90.1, Validation-intent acc=95
# Dive into Deep Learning
epoch 3, loss 0.7885, train acc 0.747, test acc 0.804, time 11.5 sec\
   => epoch: loss=0.7885, Train-accuracy=0.747, Test-accuracy=0.804, Time cost=11.5
Epoch 3. Loss: 0.878, Train_acc 0.97, Test_acc 0.96 => epoch: loss=0.878, Train-accuracy=0.97, Test-accuracy=0.96
# a Gluon script
Epoch 3, Loss 0.1 => epoch: loss=0.1
[Epoch 3] Finished in 9.1s, training accuracy: 0.9 => epoch: Time cost=9.1, Train-accuracy=0.9
Epoch [3/10], Loss: 1.5, Val_acc: 0.5 => epoch: loss=1.5, Validation-accuracy=0.5
Epoch 3/10 - loss: 0.5 - acc: 97.5% => epoch: loss=0.5, accuracy=0.975
# a callback
[Validation Epoch 3] accuracy: 0.5 => epoch: Validation-accuracy=0.5
# torch's MNIST, ported
Train Epoch: 3 [20/60000 (1%)]\tLoss: 0.4 => epoch batch 20: Train-loss=0.4
# torch's ImageNet, ported
Epoch: [3][20/100]\tLoss 0.50 (0.60)\tPrec@1 10.0 (12.0) => epoch batch 20: loss=0.5, Prec@1=10
# tqdm
Epoch 3:  45%|####      | 20/100 [00:10<00:12,  4.5it/s, loss=0.32] => epoch batch 20: loss=0.32
# tqdm, in the NCF of mlperf, ported: each bar is written over the one before
\rEpoch 2  Loss 0.2:  90%|#### | 90/100 [00:02<00:00]\rEpoch 3  Loss 0.5054:  20%|#   | 20/100 [00:01<00:08]\
   => epoch batch 20: loss=0.5054
# tqdm, before a line of a DCGAN
\r0it [00:00, ?it/s]epoch # 3 batch # 20 real loss: 0.3133 fake loss: 0.6931 generator loss: 0.3133\
   => epoch batch 20: real loss=0.3133, fake loss=0.6931, generator loss=0.3133
# torch's word_language_model, ported
| epoch   3 |    20/   66 batches | lr 20.00 | ms/batch 495.11 | loss  3.45 | ppl    31.44\
   => epoch batch 20: loss=3.45, perplexity=31.44
| end of epoch   3 | time: 32.52s | valid loss 11.21 | valid ppl 73718.95\
   => epoch: Time cost=32.52, Validation-loss=11.21, Validation-perplexity=73718.95
# gluonnlp/text_classification
INFO:root:Epochs completed : 3 Test Accuracy: 0.97, Test Loss: 0.048641199662857355\
   => epoch: Test-accuracy=0.97, Test-loss=0.048641199662857355
# a parser
Log: Epoch 3. Train Accuracy - 0.27111111111111114 => epoch: Train-accuracy=0.27111111111111114
# pygcn, ported
Epoch: 0003 loss_train: 4.1544 acc_train: 0.1429 time: 0.0564s\
   => epoch: Train-loss=4.1544, Train-accuracy=0.1429, Time cost=0.0564
# the NCF of mlperf, ported
Epoch 3: HR@10 = 0.5012, NDCG@10 = 0.2803, train_time = 2.39, val_time = 0.32\
   => epoch: HR@10=0.5012, NDCG@10=0.2803, Time cost=2.39
# gluon.contrib.estimator
[Epoch 3] finished in 25.110s: train_accuracy : 0.7877 train_softmaxcrossentropyloss0 : 0.5905\
   => epoch: Time cost=25.11, Train-accuracy=0.7877, Train-softmaxcrossentropyloss0=0.5905
# ring loss
[epoch   3] train accuracy: 0.743506, train loss: 1.052169 | val accuracy: 0.944100, time: 10.130558\
   => epoch: Train-accuracy=0.743506, Train-loss=1.052169, Validation-accuracy=0.9441, Time cost=10.130558
# sockeye 1
[INFO:sockeye.training] Checkpoint [3]\tValidation-perplexity=80.2 => checkpoint: Validation-perplexity=80.2
Checkpoint [3]\tUpdates=200 Epoch=0 Samples=12800 Time-cost=31.231 Updates/sec=6.404 => checkpoint: Time cost=31.231
# sockeye 2
Checkpoint [3]\tTrain-cross-entropy=4.1\tTrain-perplexity=60.3\
   => checkpoint: Train-cross-entropy=4.1, Train-perplexity=60.3
# neural_collaborative_filtering
INFO:root:Iteration 3: HR = 0.5012, NDCG = 0.2803 => iteration: HR=0.5012, NDCG=0.2803
# gluonnlp/bert
[step 3]\tmlm_loss=7.51\tmlm_acc=3.4\tnsp_loss= 0.60\tthroughput=12.3K tks/s\tlr=0.0001\
   => iteration: mlm_loss=7.51, mlm_acc=3.4, nsp_loss=0.6
# a policy gradient
episode 3 ends with reward 125 => episode: reward=125
# DDPG
episode 3 ends with reward -103.250000 at steps 800 => episode: reward=-103.25
# PPO
episode 3  reward  20 => episode: reward=20
# a linear regression
Episode 3 Avg Loss/Example 0.895729 => episode: Loss/Example=0.895729
# a DeepLab
iter3: pix_acc: 0.9677, mIoU: 0.8435: 100%|##########| 182/182 [05:31<00:00,  1.82s/it]\
   => iteration: pix_acc=0.9677, mIoU=0.8435
# minpy
Iter 3, training loss [ 20.35612297] => iteration: Train-loss=20.35612297
# ASTGCN
global step: 3, training loss: 5680.21, time: 50.35s => iteration: Train-loss=5680.21, Time cost=50.35
# a WGAN
discriminator loss = 0.61, Wasserstein_D = 2.0, at iter 3. => iteration: discriminator loss=0.61
"""
"""After each script its lines, each with what is read from it; all of them are of number 3."""
NONE = [
    "",
    "Epoch[3] Validation-accuracy=",
    "Epoch[x] Validation-accuracy=0.9",
    "Epoch[3] Validation-accuracy=high",
    "Epoch[3] Batch [20]\tSpeed: fast samples/sec",
    "Epoch[0] Resetting Data Iterator",
    "Epoch[3] Batch[20] SAVE CHECKPOINT",
    "[Epoch 0] Begin, current learning rate: 0.0010",
    "Epoch 3: learning rate 0.001",
    "Epoch 3: time: 0:12:34",
    "Epoch 3: Starting Learning Rate = 0.1",
    "Epoch 3: Batches complete 10/20",
    "INFO:root:Epoch : 3, Batches complete :3",
    "INFO:root:Epoch complete :3, Computing Accuracy",
    "INFO:root:Number of batches for each epoch : 25.0, Display cadence: 3",
    "Training epochs: 3, loss 0.5",
    "Epoch 3, weights [0.1, 0.2], loss [0.5, 0.6]",
    "current epoch: 3, predict 12 points",
    "The reward of episode 3 is paid to 25 agents",
    "episode 3: memory=512",
    "Epoch 3 of 10",
    "Epoch 3/10",
    "Epoch 3: validation loss improved from 0.5 to 0.4",
    "Epoch 3: ETA: 12:34:56",
    "Epoch 3: Image 12",
    "epoch 3, relative change 0.01",
    "Epoch 3 saved to model-0003.params",
    "[Epoch 3] Saving checkpoint to cifar-3.params with Accuracy: 0.9123",
    "[Epoch 3] Current best rmse: 0.31 vs previous 0.4, saved to a.params",
    "Early stopping at epoch 3 with best accuracy 0.9",
    "Loading epoch 7 from model-0007.params",
    'Saved checkpoint to "mnist-0003.params"',
    "Update[500]: Change learning rate to 5.00000e-03",
    "start with arguments Namespace(batch_size=1, epoch=3, log_interval=5, loss=1)",
    "num_epochs=10 accuracy=0.9",
    "starting epoch 4 with 500 samples",
    "test loss 4.77, test ppl 117.9",
    "Batch 200. Loss: 0.4",
    "INFO:root:End. Best Iteration 3:  HR = 0.5012, NDCG = 0.2803. ",
    "Val acc:  ('accuracy', 0.17797974246231155) ('mae', 0.00707461079582572)",
    "| End of training | test loss 11.22 | test ppl 74475.88",
    "epochs:   0%|          | 0/50 [00:00<?, ?it/s]",
    "[20:44:17] ../src/io/iter_mnist.cc:112: MNISTIter: load 60000 images, shuffle=1, shape=[64,1,28,28]",
    "[2]Accuracy-Highest: 0.00000",
    "INFO:root:Evaluate: HR = 0.5012, NDCG = 0.2803",
    "Validation-perplexity improved to 80.2 (delta=1.0).",
    "[INFO] Checkpoint [3] 100 translations saved to 'decode.output'",
    "step 3: memory=512",
    "iteration 3 took 4 s",
    "100/100 [==============================] - 5s - loss: 0.5",
    f"Epoch[0] {'x' * 101}=1",
]


def test_figures_are_read_in_the_spelling_of_each_script():
    for row in FIGURES.splitlines():
        line, arrow, told = row.rpartition(" => ")
        if not arrow:
            continue
        line = line.rstrip()
        found = read_line(f"{line}\n")
        assert found is not None, line
        where, _, figures = told.partition(": ")
        batch = f" batch {found.batch}" if found.batch is not None else ""
        assert (found.number, f"{found.unit}{batch}") == (3, where), line
        expected = {name: float(value) for name, _, value in (pair.rpartition("=") for pair in figures.split(", "))}
        assert found.values == pytest.approx(expected), line


def test_a_line_without_figures_has_none():
    assert [line for line in NONE if read_line(line) is not None] == []


def test_the_number_of_epochs_is_read_where_a_line_has_it():
    lines = [
        "Epoch 3/10: loss 0.5",
        "[3/10][20/100] Loss_D: 0.5",
        "Epoch [3/10], Loss: 1.5",
        "(Epoch 3 / 10) val acc: 0.5",
    ]
    assert [found.of for line in lines if (found := read_line(line))] == [10, 10, 10, 10]


def test_a_bar_of_keras_has_the_figures_of_the_line_before_it():
    assert epoch_alone("Epoch 3/10") == (3, 10)
    assert epoch_alone("Epoch 3/10: begins") is None
    figures = "- loss: 0.5012 - acc: 0.8 - val_loss: 0.6"
    whole = read_line(f"60000/60000 [==============================] - 5s 83us/step {figures}", alone=3)
    part = read_line(f"  640/60000 [>.............................] - ETA: 5s {figures}", alone=3)
    for found, batch in ((whole, None), (part, 640)):
        assert (found.number, found.batch) == (3, batch)
        assert found.values == {"loss": 0.5012, "accuracy": 0.8, "Validation-loss": 0.6}


def test_a_metric_that_is_not_a_number_is_read_as_such():
    assert math.isnan(read_line("Epoch [3/10], train loss: nan").values["Train-loss"])
    assert read_line("Epoch[1] Batch [20]\tSpeed: inf samples/sec").values == {SPEED: math.inf}


def test_the_rank_of_a_worker_is_read_where_its_logging_has_it():
    assert rank_in("2018-09-20 09:31:08,001 Node[1] Epoch[3] Train-perplexity=187.4") == 1
    assert rank_in("Epoch[3] Train-perplexity=187.4") is None
