/**
 * Real processes on a shared machine: a test that fails gets a second chance, and the first failure is printed, not hidden.
 * Only for tests that start servers; what is pure must pass at once.
 */
import { jest } from '@jest/globals';

jest.retryTimes(1, { logErrorsBeforeRetry: true });
