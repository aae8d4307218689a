# The image mxjob/tvm:0.27 for a Kubernetes cluster, from the lock that the local cluster installs.
#   docker build -t mxjob/tvm:0.27 -f tvm-0.27.Dockerfile .
# g++ because an RPC server links each candidate that it is sent; the local cluster uses the machine's.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY tvm-0.27.txt /tmp/
RUN pip install --no-cache-dir --require-hashes -r /tmp/tvm-0.27.txt
RUN python -c "import tvm"
