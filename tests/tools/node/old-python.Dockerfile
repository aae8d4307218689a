# Stands for python:3.6-slim-bullseye and others of years before: an installation of this machine, below /usr/local.
FROM docker.io/library/python:3.11-slim-bookworm
ARG VERSION
COPY . /usr/local/
RUN ldconfig && for name in python python3; do ln -sf python${VERSION} /usr/local/bin/$name; done \
    && printf '#!/bin/sh\nexec python -m pip "$@"\n' >/usr/local/bin/pip && chmod +x /usr/local/bin/pip
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
