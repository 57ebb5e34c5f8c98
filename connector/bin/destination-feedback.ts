#!/usr/bin/env node
import { main } from '../main'

main('destination-feedback')
