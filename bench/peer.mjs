// The nearest peer: faros-airbyte-cdk with as small a source as it takes to read the same pages.
import cdk from 'faros-airbyte-cdk'
import { pages } from './floors/pages.mjs'

class Reviews extends cdk.AirbyteStreamBase {
  constructor(config, logger) {
    super(logger)
    this.config = config
  }

  get name() {
    return 'reviews'
  }

  get primaryKey() {
    return ['id']
  }

  get cursorField() {
    return 'modifiedTime'
  }

  getJsonSchema() {
    return { type: 'object', properties: { id: { type: 'integer' }, modifiedTime: { type: 'string' } } }
  }

  async *readRecords() {
    for await (const body of pages(this.config.base_url, this.config.pages)) yield* JSON.parse(body).reviews
  }
}

class Source extends cdk.AirbyteSourceBase {
  get type() {
    return 'feedback'
  }

  async spec() {
    return new cdk.AirbyteSpec({ connectionSpecification: { type: 'object', properties: {} } })
  }

  async checkConnection() {
    return [true, undefined]
  }

  streams(config) {
    return [new Reviews(config, this.logger)]
  }
}

const logger = new cdk.AirbyteSourceLogger()
new cdk.AirbyteSourceRunner(logger, new Source(logger)).mainCommand().parse()
