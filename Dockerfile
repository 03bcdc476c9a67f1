# syntax=docker/dockerfile:1
# `docker build .` builds the gateway, and `docker build --target platform .` the platform behind it.
# All stages use the same image, so that the build matches the runtime. To pin its content as well, build with
# --build-arg NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:<digest>.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim

# The release: its version, commit and repository, for the labels.
ARG VERSION=""
ARG REVISION=""
ARG SOURCE=""

FROM ${NODE_IMAGE} AS without-npm
RUN rm -rf /usr/local/lib/node_modules /usr/local/include /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
  /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-v*

# A copy, so that no layer has npm: neither program runs it.
FROM scratch AS runtime
# hadolint ignore=DL3067
COPY --from=without-npm / /
ENV NODE_ENV=production PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ARG VERSION
ARG REVISION
ARG SOURCE
ARG NODE_IMAGE
LABEL org.opencontainers.image.title="Weir" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.source="${SOURCE}" \
  org.opencontainers.image.base.name="${NODE_IMAGE}"

FROM ${NODE_IMAGE} AS manifests
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY platform/package.json ./platform/

FROM manifests AS build
RUN npm ci
COPY tsconfig.json ./
COPY scripts ./scripts
COPY src ./src
COPY platform ./platform
# The platform shows it.
COPY docs/errors.md ./docs/
RUN npm run build

FROM manifests AS platform-packages
RUN npm ci --omit=dev --workspace platform

FROM runtime AS platform
LABEL org.opencontainers.image.description="The service behind the demo of Weir"
WORKDIR /app
COPY --from=platform-packages /app/node_modules ./node_modules
COPY --from=platform-packages /app/platform ./platform
COPY --from=build /app/platform/dist ./platform/dist
COPY platform/openapi.yaml ./platform/
# A numeric user, so that Kubernetes can verify that it is not root. It owns no file below /app and writes none.
USER 65532:65532
EXPOSE 3000
# Node is process 1 and receives SIGTERM directly, without a shell in between.
ENTRYPOINT ["node", "/app/platform/dist/main.js"]
CMD ["--host", "0.0.0.0"]

FROM runtime AS gateway
LABEL org.opencontainers.image.description="A distributed rate-limiting gateway"
WORKDIR /app
COPY package.json ./
# The packages that it uses are part of it.
COPY --from=build /app/dist ./dist
# For `kubectl exec` and `docker exec`.
RUN ln -s /app/dist/main.js /usr/local/bin/weir
COPY lua ./lua
# The prices of the platform: for the demo's configuration and the chart's `platform.enabled`.
COPY platform/openapi.yaml ./platform/
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["start", "--config", "/etc/weir/weir.yaml"]
# At the port and with the certificate of this file. A container that is started with another file needs a --health-cmd of its own.
HEALTHCHECK --interval=15s --timeout=5s --start-period=15s CMD ["node", "/app/dist/main.js", "health", "--config", "/etc/weir/weir.yaml"]
