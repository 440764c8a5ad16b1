# Two stages: the compiler stays behind. The result runs as the image's own user `node`, which owns the state folder.
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/setup.mjs scripts/setup.mjs
COPY src src
RUN node scripts/setup.mjs --for build && npm prune --omit=dev

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN ln -s /app/dist/main.js /usr/local/bin/pointsman \
 && install -d -o node -g node /var/lib/pointsman
USER node
WORKDIR /var/lib/pointsman
VOLUME /var/lib/pointsman
# Sentinel; DNS by UDP and TCP.
EXPOSE 26379/tcp 5353/udp 5353/tcp
# Alive is what a restart can mend; whether all is well is told by `status`, and by /ready. Needs the admin block of the yaml.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9126/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["run", "--config", "/var/lib/pointsman/pointsman.yaml"]
