# The image mxjob/mxnet:1.9.1-cu112 for nodes with NVIDIA's GPUs, from the lock that the local cluster installs.
#   docker build -t mxjob/mxnet:1.9.1-cu112 -f mxnet-1.9.1-cu112.Dockerfile .
# libcuda.so.1 is the driver's: NVIDIA's container runtime brings it from the node, so MXNet can't be imported here.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY mxnet-1.9.1-cu112.txt /tmp/
RUN pip install --no-cache-dir --require-hashes -r /tmp/mxnet-1.9.1-cu112.txt
RUN printf '%s\n' /usr/local/lib/python3.11/site-packages/nvidia/*/lib >/etc/ld.so.conf.d/cuda.conf && ldconfig
RUN ldd /usr/local/lib/python3.11/site-packages/mxnet/libmxnet.so | grep 'not found' | grep -v 'libcuda.so.1' && exit 1 || true
