/** JSON that is passed on as it came, so that no integer in it is rounded. */
export class JsonText {
  constructor(readonly text: string) {}
}

export const printJsonText = (value: unknown): string =>
  value instanceof JsonText ? value.text : JSON.stringify(value)
