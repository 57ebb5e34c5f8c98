import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A certificate that signs itself, for these names, in files of `folder`; undefined where no openssl is installed. */
export const createCertificate = (folder: string, name: string, ...names: ReadonlyArray<string>) => {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  try {
    execFileSync(
      'openssl',
      [
        ...[...made, '-keyout', key, '-out', cert, '-subj', `/CN=${name}`],
        ...['-addext', `subjectAltName=${names.join(',')}`],
      ],
      { stdio: 'ignore' },
    )
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return { path: cert, key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}
