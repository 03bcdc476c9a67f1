# syntax=docker/dockerfile:1
# Both stages use the same image, so that the build matches the runtime. To pin its content as well, build with
# --build-arg NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:<digest>.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && npm prune --omit=dev

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY lua ./lua
# A numeric user, so that Kubernetes can verify that it is not root. It owns no file below /app and writes none.
USER 65532:65532
EXPOSE 8080 9090
# Node is process 1 and receives SIGTERM directly, without a shell in between.
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["start", "--config", "/etc/weir/weir.yaml"]
HEALTHCHECK --interval=10s --timeout=2s --start-period=10s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WEIR_ADMIN_PORT || 9090}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
