import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { type Database, quoteLiteral } from '../snapshot/store'
import type { LakeOptions } from './place'
import { listFolders } from './storage'

/** The extensions that a lake needs, with the PyPI packages that contain them. */
const extensionPackages = {
  ducklake: 'duckdb-extension-ducklake',
  postgres_scanner: 'duckdb-extension-postgres-scanner',
  httpfs: 'duckdb-extension-httpfs',
} as const
type ExtensionName = keyof typeof extensionPackages

/** The folders in which Python keeps packages, starting with the active environment. */
const listPackageFolders = (env: NonNullable<LakeOptions['env']>): ReadonlyArray<string> =>
  [...(env.VIRTUAL_ENV ? [env.VIRTUAL_ENV] : []), join(homedir(), '.local'), '/usr/local', '/usr']
    .flatMap((root) => listFolders(join(root, 'lib')))
    .filter((path) => /\/python3[^/]*$/.test(path))
    .flatMap((path) => [join(path, 'site-packages'), join(path, 'dist-packages')])

/** Where an extension may be, in search order. Nothing is downloaded. */
const listExtensionFiles = (
  name: ExtensionName,
  { version, platform }: { readonly version: string; readonly platform: string },
  { extensions, env = {} }: LakeOptions,
): ReadonlyArray<string> => {
  const file = `${name}.duckdb_extension`
  const own = extensions ?? env.FEEDBACK_DUCKDB_EXTENSIONS
  const packaged = join(`duckdb_extension_${name}`, 'extensions', version, file)
  return [
    ...(own ? [file, join(version, platform, file), packaged].map((path) => join(own, path)) : []),
    join(homedir(), '.duckdb', 'extensions', version, platform, file),
    ...listPackageFolders(env).map((folder) => join(folder, packaged)),
  ]
}

export const loadExtension = async (db: Database, name: ExtensionName, options: LakeOptions): Promise<void> => {
  const version = String(await db.scalar('SELECT library_version FROM pragma_version()'))
  const platform = String(await db.scalar('SELECT platform FROM pragma_platform()'))
  const found = listExtensionFiles(name, { version, platform }, options).find((path) => existsSync(path))
  const install =
    `Install it: pip install --target FOLDER ${extensionPackages[name]}==${version.slice(1)}, and give ` +
    `--extensions FOLDER; or run INSTALL ${name} in DuckDB ${version}, which puts it into ~/.duckdb.`
  if (found === undefined)
    throw new CommandError(
      configFailure(
        `A lake needs DuckDB's extension ${name} of ${version} for ${platform}, which is not on this machine. ` +
          install,
      ),
    )
  await db.run(`LOAD ${quoteLiteral(resolve(found))}`).catch((error: unknown) => {
    throw new CommandError(
      configFailure(
        `DuckDB ${version} for ${platform} cannot load ${found}: it is of another version, or damaged. ${install}`,
        String(error),
      ),
    )
  })
}
