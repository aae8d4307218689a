# The image mxjob/mxnet:1.9.1-cu112 for nodes with NVIDIA's GPUs, from the lock that the local cluster installs.
#   docker build -t mxjob/mxnet:1.9.1-cu112 -f mxnet-1.9.1-cu112.Dockerfile .
# It runs as root, so that images made from it can install.
ARG PYTHON=3.11-slim-bookworm
FROM python:${PYTHON}
LABEL org.opencontainers.image.title="mxnet-cu112" \
      org.opencontainers.image.description="MXNet 1.9.1 with CUDA 11 for MXJobs, from a lock with hashes" \
      org.opencontainers.image.version="1.9.1" \
      org.opencontainers.image.licenses="Apache-2.0"
# libmxnet.so links both; what is removed has times in it, and nothing reads it.
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 libquadmath0 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig /var/log/apt /var/log/*.log
COPY mxnet-1.9.1-cu112.txt /usr/local/share/mxjob/
# With SOURCE_DATE_EPOCH compiled files hold a hash of their source instead of its time.
RUN SOURCE_DATE_EPOCH=315532800 pip install --no-cache-dir --root-user-action=ignore --require-hashes \
        -r /usr/local/share/mxjob/mxnet-1.9.1-cu112.txt
# libcuda.so.1 is the driver's: NVIDIA's container runtime brings it from the node, so MXNet can't be imported here.
RUN site=$(python -c "import sysconfig; print(sysconfig.get_path('purelib'))") \
    && printf '%s\n' "$site"/nvidia/*/lib >/etc/ld.so.conf.d/cuda.conf \
    && ldconfig && rm -rf /var/cache/ldconfig \
    && ! ldd "$site/mxnet/libmxnet.so" | grep 'not found' | grep -v 'libcuda.so.1'
