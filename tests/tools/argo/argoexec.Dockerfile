# What Argo's own image of the name has without Git's, Kerberos's and S3's files: the program, and root, as there.
FROM scratch
COPY root /
ENV PATH=/bin
ENTRYPOINT ["argoexec"]
