/** A command of a connector as the platform runs it. */
export type Verb = 'spec' | 'check' | 'discover' | 'read' | 'write'

/** The working directory of each command. */
export const workingFolder = (verb: Verb): string =>
  verb === 'read' ? '/source' : verb === 'write' ? '/dest' : '/config'

export const commandArguments = (verb: Verb, folder: string, hasState = false): ReadonlyArray<string> => {
  if (verb === 'spec') return ['spec']
  if (verb === 'check' || verb === 'discover') return [verb, '--config', `${folder}/connectionConfiguration.json`]
  const files = ['--config', `${folder}/connectorConfig.json`, '--catalog', `${folder}/catalog.json`]
  return [verb, ...files, ...(verb === 'read' && hasState ? ['--state', `${folder}/inputState.json`] : [])]
}

/** In the order in which the shell opens them: a FIFO opens once both ends are there. */
const redirections = (verb: Verb): string => {
  if (verb === 'write') return '2> stderr > stdout < stdin'
  return verb === 'read' ? '2> stderr > stdout' : '> jobOutput.json'
}

/**
 * The script that runs instead of the image's ENTRYPOINT, as process 1 of the container. The connector is a grandchild
 * of it, and learns about the end of the sync only through its pipes. airbyte-platform: ContainerCommandFactory.
 */
export const containerScript = (
  verb: Verb,
  {
    folder,
    hasState = false,
    pollSeconds = 10,
  }: {
    readonly folder: string
    readonly hasState?: boolean
    /** How often it looks for the file TERMINATED. */
    readonly pollSeconds?: number
  },
): string => `cd ${folder}
if [ -z "$AIRBYTE_ENTRYPOINT" ]; then
  echo "AIRBYTE_ENTRYPOINT is not set" >&2
  exit 127
fi
(eval "$AIRBYTE_ENTRYPOINT ${commandArguments(verb, folder, hasState).join(' ')}" ${redirections(verb)}) &
CHILD=$!
(while true; do
  if [ -f TERMINATED ]; then kill $CHILD; exit 0; fi
  sleep ${pollSeconds}
done) &
wait $CHILD
STATUS=$?
echo $STATUS > exitCode.tmp
mv -f exitCode.tmp exitCode.txt
exit $STATUS
`

/** airbyte-platform: RuntimeEnvVarFactory. */
export const containerEnvironment = (
  entrypoint: string,
  { id, attempt }: { readonly id: number; readonly attempt: number },
): Readonly<Record<string, string>> => ({
  AIRBYTE_ENTRYPOINT: entrypoint,
  USE_STREAM_CAPABLE_STATE: 'true',
  USE_FILE_TRANSFER: 'false',
  CONCURRENT_SOURCE_STREAM_READ: 'false',
  DEPLOYMENT_MODE: 'OSS',
  WORKER_CONNECTOR_IMAGE: 'feedback/connector:0.1.0',
  WORKER_JOB_ID: String(id),
  WORKER_JOB_ATTEMPT: String(attempt - 1),
  LOG_LEVEL: 'INFO',
  JAVA_OPTS: '',
  AIRBYTE_ENABLE_UNSAFE_CODE: 'false',
  AIRBYTE_EDITION: 'COMMUNITY',
  AIRBYTE_VERSION: '2.5.0',
  KUBERNETES_SERVICE_HOST: '10.0.0.1',
  KUBERNETES_SERVICE_PORT: '443',
})
