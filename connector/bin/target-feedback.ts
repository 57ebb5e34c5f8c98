#!/usr/bin/env node
import { main } from '../main'

main('target-feedback')
