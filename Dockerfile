# syntax=docker/dockerfile:1

# Newer than the least version in go.mod: 1.26.10 mends known faults of the
# standard library. internal/deploy holds that it stays so.
FROM golang:1.26.11-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /out/bot ./cmd/bot
# Where the embedded database lives when no other is named.
RUN mkdir /out/data

# No shell and no package manager: certificates, time zones and one binary.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/bot /bot
COPY --from=build --chown=65532:65532 /out/data /data
WORKDIR /data
USER 65532:65532
# 8080 is for agents and the provider; 8081 is the owner's and is never put on
# a public address.
EXPOSE 8080 8081
# The image has nothing that could ask; probe /healthz and /readyz from outside.
HEALTHCHECK NONE
ENTRYPOINT ["/bot"]
CMD ["serve"]
