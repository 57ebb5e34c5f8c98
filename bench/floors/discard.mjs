import { base, count, pages } from './pages.mjs'

for await (const _ of pages(base, count));
