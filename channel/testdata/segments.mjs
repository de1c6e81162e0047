// Writes segments.json, the expected results of TestCountSegments, from
// Twilio's own calculator: the npm package sms-segments-calculator 1.3.0.
//
//   mkdir /tmp/oracle && cd /tmp/oracle && npm install sms-segments-calculator@1.3.0
//   node …/channel/testdata/segments.mjs > …/channel/testdata/segments.json
//
// The strings are made here, without randomness; the package is found from the
// directory in which the script is started.
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { version } = require('sms-segments-calculator/package.json');
if (version !== '1.3.0') throw new Error('want sms-segments-calculator 1.3.0, have ' + version);
const { SegmentedMessage } = require('sms-segments-calculator');

const texts = [
  '', ' ', '\n', '\r\n', 'YES', 'no', 'Send it?', 'Send "Q3 numbers" to dana@example.test? Reply YES or NO.',
  'Pay 412.00 EUR to Harlow Legal (invoice 2207)?', 'Pay €412.00', '[1] {a} ~b~ c\\d e^f g|h', 'a\fb', 'a\tb',
  'naïve façade', 'Ça va', 'ça va', 'Åse Ærø Øst', 'Straße', 'señor ¿qué? ¡sí!', 'ΔΦΓΛΩΠΨΣΘΞ', 'αβγ', 'Привет', '你好', 'こんにちは',
  'नमस्ते', 'مرحبا', 'שלום', 'สวัสดี', '안녕하세요', 'Zażółć gęślą jaźń', 'don’t', 'don\'t', '“quoted”', '"quoted"', 'a – b — c', 'wait…', 'wait...',
  'non\u00a0breaking', 'zero\u200bwidth', 'soft\u00adhyphen', '`code`', 'é', 'e\u0301', 'n\u0303', '½ kg', '°C', '£5 ¥5 $5 ¤5', '§ 4', '€', '^', '|', '~', '\\', '{}', '[]',
  '👍', '👍🏽', '👍👍👍', '👩‍👩‍👧‍👦', '🇩🇪', '🇩🇪🇫🇷', '❤', '❤️', '☺️', '1️⃣', '🏳️‍🌈', '🧑🏿‍💻', '𝒳', '𠜎', 'ok 👍', '👍 to “Send it?”', 'a👍b', '\u{1F600}\u{1F601}',
];

// Lengths around every border, with one special character at the end, in the
// middle, at the start, and on each side of the border.
const units = { gsm: [159, 160, 161, 152, 153, 154, 305, 306, 307, 459, 460, 612], ucs: [66, 67, 68, 69, 70, 71, 133, 134, 135, 200, 201, 202, 268, 269] };
for (const n of units.gsm) {
  texts.push('a'.repeat(n), 'a'.repeat(n - 1) + '€', '€' + 'a'.repeat(n - 1), 'a'.repeat(n - 2) + '[]', 'é'.repeat(n), 'a'.repeat(n - 3) + '\r\nb');
  texts.push('a'.repeat(152) + '^' + 'b'.repeat(n - 152 > 0 ? n - 152 : 0));
}
for (const n of units.ucs) {
  for (const special of ['’', '👍', '👍🏽', '👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301', '❤️', 'я']) {
    texts.push('a'.repeat(n - 1) + special);
  }
  texts.push('’' + 'b'.repeat(n - 1), '…' + '['.repeat(n - 1), '’'.repeat(n), 'я'.repeat(n - 2) + '\r\n');
  texts.push('’' + 'b'.repeat(65) + '👍' + 'c'.repeat(n > 68 ? n - 68 : 0), '’' + 'b'.repeat(60) + '👩‍👩‍👧‍👦' + 'c'.repeat(n));
}
for (const n of [1, 10, 34, 35, 36, 67, 68, 100, 300]) texts.push('👍'.repeat(n), '👍🏿'.repeat(n), '🇫🇷'.repeat(n), '^'.repeat(n));
texts.push('x'.repeat(1600), 'x'.repeat(1599) + '’', '€'.repeat(800), '👍'.repeat(800));

const unique = [...new Set(texts)];
const cases = unique.map((text) => {
  const m = new SegmentedMessage(text, 'auto', false);
  const bits = m.encodingName === 'GSM-7' ? 7 : 16;
  return { text, encoding: m.encodingName, units: m.messageSize / bits, sizes: m.segments.map((s) => s.messageSizeInBits() / bits) };
});
console.log('{"oracle":"npm sms-segments-calculator ' + version + '","cases":[\n' + cases.map((c) => JSON.stringify(c)).join(',\n') + '\n]}');
