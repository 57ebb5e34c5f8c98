# docs/release.md says how to update the digest.
ARG BASE_NAME=node:24-bookworm-slim
ARG BASE_DIGEST=sha256:2fe369e969550cde8e867afc3fe370b260140cab4a23d467074295b42163d553

FROM ${BASE_NAME}@${BASE_DIGEST} AS build
WORKDIR /connector
COPY .npmrc package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
# The time in the list of parts, in seconds since 1970. If unset, the list has none.
ARG SOURCE_DATE_EPOCH
# Typings, source maps and the ES module copies of CommonJS code are only for compilers and bundlers. Files copied
# unchanged would keep their modes from the checkout.
RUN npm run build \
 && npm sbom --sbom-format=cyclonedx >npm-sbom.json \
 && node scripts/sbom.mjs --image <npm-sbom.json >sbom.json \
 && npm prune --omit=dev --ignore-scripts \
 && find node_modules build -type f \( -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' -o -name '*.map' \) -delete \
 && rm -rf node_modules/*/es6 \
 && chmod -R u=rwX,go=rX package.json LICENSE dbt

FROM ${BASE_NAME}@${BASE_DIGEST} AS runtime
ARG BASE_NAME
ARG BASE_DIGEST
# With an arena for each thread, the C library would keep 10 to 20 MiB more of what DuckDB has freed.
ENV MALLOC_ARENA_MAX=2
ENV NODE_ENV=production TZ=UTC PATH=/connector/node_modules/.bin:$PATH
COPY --from=build /connector/package.json /connector/sbom.json /connector/LICENSE /connector/
COPY --from=build /connector/node_modules /connector/node_modules
COPY --from=build /connector/build /connector/build
COPY --from=build /connector/dbt/models /connector/dbt/models
# Any user may run the image, and keep rejected records where it starts.
RUN install -d -m 1777 /airbyte
WORKDIR /airbyte
USER 1000:1000
LABEL org.opencontainers.image.version=0.1.0 \
      org.opencontainers.image.licenses=MIT \
      org.opencontainers.image.base.name=docker.io/library/${BASE_NAME} \
      org.opencontainers.image.base.digest=${BASE_DIGEST}

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
