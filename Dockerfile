# The image of frontends and shards: docker build -t xprofd . (docs/kubernetes.md).
# Built as anywhere else, by .ci/install and the release preset; what runs is Debian's slim image,
# the shared libraries that the binary names (tests/helm/test_image.py), certificates, the binary.
FROM debian:12 AS build
WORKDIR /src
COPY .ci/ .ci/
RUN .ci/install --build
COPY . .
RUN . .ci/env.sh && cmake --preset release && cmake --build --preset release --target xprofd && strip build/release/xprofd

FROM debian:12-slim
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        ca-certificates libcjose0 libcurl4 libh2o0.13 libisal2 libjansson4 libjemalloc2 libprotobuf-c1 \
        libbrotli1 libssl3 libuv1 libzstd1 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/xprofd /usr/bin/xprofd
USER 65532:65532
EXPOSE 8791
ENTRYPOINT ["/usr/bin/xprofd"]
