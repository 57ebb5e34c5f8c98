FROM node:24-bookworm-slim AS build
WORKDIR /connector
COPY .npmrc package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
# Only a compiler or a bundler reads typings, source maps and the ES module doubles of CommonJS code.
RUN npm run build \
 && npm sbom --omit=dev --sbom-format=cyclonedx >sbom.json \
 && npm prune --omit=dev --ignore-scripts \
 && find node_modules build -type f \( -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' -o -name '*.map' \) -delete \
 && rm -rf node_modules/*/es6

FROM node:24-bookworm-slim AS runtime
ENV NODE_ENV=production TZ=UTC PATH=/connector/node_modules/.bin:$PATH
COPY --from=build /connector/package.json /connector/sbom.json /connector/LICENSE /connector/
COPY --from=build /connector/node_modules /connector/node_modules
COPY --from=build /connector/build /connector/build
COPY --from=build /connector/dbt/models/marts /connector/dbt/models/marts
RUN install -d -o node -g node /airbyte
WORKDIR /airbyte
USER 1000:1000
LABEL org.opencontainers.image.version=0.1.0 \
      org.opencontainers.image.licenses=MIT \
      org.opencontainers.image.base.name=docker.io/library/node:24-bookworm-slim

FROM runtime AS destination
LABEL io.airbyte.name=feedback/destination-feedback io.airbyte.version=0.1.0 \
      org.opencontainers.image.title=destination-feedback \
      org.opencontainers.image.description="Airbyte destination and Singer target for the Feedback Data Service" \
      org.opencontainers.image.documentation=https://docs.airbyte.com/integrations/destinations/feedback
ENV AIRBYTE_ENTRYPOINT=/connector/build/bin/destination-feedback.js
ENTRYPOINT ["/connector/build/bin/destination-feedback.js"]

FROM runtime AS source
LABEL io.airbyte.name=feedback/source-feedback io.airbyte.version=0.1.0 \
      org.opencontainers.image.title=source-feedback \
      org.opencontainers.image.description="Airbyte source and Singer tap for the Feedback Data Service" \
      org.opencontainers.image.documentation=https://docs.airbyte.com/integrations/sources/feedback
ENV AIRBYTE_ENTRYPOINT=/connector/build/bin/source-feedback.js
ENTRYPOINT ["/connector/build/bin/source-feedback.js"]
