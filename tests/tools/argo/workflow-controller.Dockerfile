# What Argo's own image of the name has: the program, and its user.
FROM scratch
COPY root /
ENV PATH=/bin
USER 8737
ENTRYPOINT ["workflow-controller"]
