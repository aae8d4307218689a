# The image mxjob/mxnet:1.9.1 for a Kubernetes cluster, from the lock that the local cluster installs.
#   docker build -t mxjob/mxnet:1.9.1 -f mxnet-1.9.1.Dockerfile .
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY mxnet-1.9.1.txt /tmp/
RUN pip install --no-cache-dir --require-hashes -r /tmp/mxnet-1.9.1.txt
RUN python -c "import mxnet"
