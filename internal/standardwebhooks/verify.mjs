// Verifies signed webhooks with the scheme's own library.
//
// stdin:  a JSON list of {secret, headers, body}
// stdout: a JSON list of {payload} or {error}, in the same order
import { Webhook } from "standardwebhooks";

let input = "";
for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;

const verdicts = JSON.parse(input).map(({ secret, headers, body }) => {
  try {
    return { payload: new Webhook(secret).verify(body, headers) };
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(verdicts));
