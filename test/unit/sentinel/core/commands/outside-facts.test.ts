import { describe, expect, test } from '@jest/globals';
import { outsideQuestions } from '../../../../../src/sentinel/core/commands/outside-facts.js';

describe('outsideQuestions', () => {
  test.each([
    ['SENTINEL MONITOR m redis-a 6379 2', ['redis-a'], []],
    ['sentinel monitor m 10.0.0.1 6379 2', [], []],
    ['sentinel monitor m ::1 6379 2', [], []],
    ['sentinel monitor m redis-a 6379', [], []],
    ['sentinel set m quorum 2 Notification-Script /n client-reconfig-script c.sh', [], ['/n', 'c.sh']],
    ['sentinel set m notification-script', [], []],
    ['sentinel set notification-script quorum 2', [], []],
    ['sentinel masters', [], []],
    ['publish notification-script x', [], []],
    ['sentinel', [], []],
  ])('%s', (line, hosts, scripts) => {
    expect(outsideQuestions(line.split(' '))).toEqual({ hosts, scripts });
  });

  test('an empty name or path is no question', () => {
    expect(outsideQuestions(['SENTINEL', 'MONITOR', 'm', '', '1', '1'])).toEqual({ hosts: [], scripts: [] });
    expect(outsideQuestions(['SENTINEL', 'SET', 'm', 'notification-script', ''])).toEqual({ hosts: [], scripts: [] });
    expect(outsideQuestions([])).toEqual({ hosts: [], scripts: [] });
  });
});
