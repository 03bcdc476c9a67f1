# syntax=docker/dockerfile:1
# `docker build .` builds the gateway, and `docker build --target platform .` the platform behind it.
# All stages use the same image, so that the build matches the runtime. To pin its content as well, build with
# --build-arg NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:<digest>.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim

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

FROM ${NODE_IMAGE} AS platform
ENV NODE_ENV=production
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

FROM ${NODE_IMAGE} AS gateway
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
# The packages that it uses are part of it.
COPY --from=build /app/dist ./dist
COPY lua ./lua
# The prices of the platform: for the demo's configuration and the chart's `platform.enabled`.
COPY platform/openapi.yaml ./platform/
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["start", "--config", "/etc/weir/weir.yaml"]
HEALTHCHECK --interval=10s --timeout=2s --start-period=10s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WEIR_ADMIN_PORT || 9090}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
