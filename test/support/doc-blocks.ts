import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sandbox } from '../../connector/sandbox/start'

export const docsFolder = join(__dirname, '..', '..', 'docs')

/** The code blocks of a page in one language, in their order, without the indentation of an enclosing list. */
export const codeBlocks = (page: string, language: string): ReadonlyArray<string> =>
  [...readFileSync(join(docsFolder, page), 'utf8').matchAll(/^( *)```(\w+)\n([\s\S]*?)^\1```$/gm)].flatMap(
    ([, indent = '', given, text = '']) => (given === language ? [text.replaceAll(`\n${indent}`, '\n').trim()] : []),
  )

/** Replaces the placeholders in the text with the address and credentials of a sandbox. */
export const fillIn = (text: string, { url, accessToken, applicationId, applicationSecret }: Sandbox) =>
  text
    .replaceAll('https://feedback.example.com', url)
    .replaceAll('YOUR_TOKEN', accessToken)
    .replaceAll('YOUR_APPLICATION', applicationId)
    .replaceAll('YOUR_SECRET', applicationSecret)
