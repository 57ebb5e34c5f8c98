import babel from '@babel/core'
import { Instrumenter } from '@stryker-mutator/instrumenter'

const silent = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].flatMap((level) => [
    [level, () => undefined],
    [`is${level[0].toUpperCase()}${level.slice(1)}Enabled`, () => false],
  ]),
)
const fromOne = ({ line, column }) => ({ line: line + 1, column: column + 1 })

const { types } = babel
const isSwitch = (node) => types.isCallExpression(node) && node.callee.name?.startsWith('stryMutAct_')
/** `() => undefined` instead of an arrow function. */
const isEmptyArrow = (node) =>
  types.isArrowFunctionExpression(node) && types.isIdentifier(node.body, { name: 'undefined' })

/**
 * For each arrow function that a mutant empties, moves the switch into the function. Outside, the switch would be read
 * only once, when the file is loaded, and each of these mutants would need a separate process.
 */
const moveSwitches = (text) => {
  const options = { configFile: false, babelrc: false, parserOpts: { plugins: ['typescript'] } }
  const tree = babel.parseSync(text, options)
  babel.traverse(tree, {
    ConditionalExpression: {
      exit(path) {
        const { test, consequent, alternate } = path.node
        if (!isSwitch(test) || !isEmptyArrow(consequent)) return
        const call = types.callExpression(alternate, [types.spreadElement(types.identifier('stryArgs'))])
        path.replaceWith(
          types.arrowFunctionExpression(
            [types.restElement(types.identifier('stryArgs'))],
            types.conditionalExpression(test, types.identifier('undefined'), call),
          ),
        )
        path.skip()
      },
    },
  })
  return babel.transformFromAstSync(tree, text, options).code
}

/** The source with a switch for each mutant of StrykerJS, and the mutants; lines and columns count from 1. */
export const instrumentSource = async (name, content) => {
  const { files, mutants } = await new Instrumenter(silent).instrument([{ name, content, mutate: true }], {
    plugins: null,
    excludedMutations: [],
    ignorers: [],
  })
  return {
    text: moveSwitches(files[0].content),
    mutants: mutants.map(({ id, replacement, location: { start, end } }) => ({
      id,
      replacement,
      location: { start: fromOne(start), end: fromOne(end) },
    })),
  }
}
