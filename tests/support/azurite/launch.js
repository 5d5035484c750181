// Runs Azurite until standard input ends, so that it never outlives the test that started it, however that ends.
//
// A line on standard input is JavaScript, the body of an async function with `service`, a client of the account by
// Microsoft's own library, and `sdk`, that library. What it returns is a line of JSON on standard output.
const readline = require("readline");
const sdk = require("@azure/storage-blob");

const say = console.log;
let service;
console.log = (text) => {
  const found = /successfully listens on (.*)$/.exec(text);
  if (!found) return;
  const credential = new sdk.StorageSharedKeyCredential("devstoreaccount1", process.env.AZURITE_KEY);
  service = new sdk.BlobServiceClient(`${found[1]}/devstoreaccount1`, credential);
  service.shared = credential;
  say(found[1]);
};

const AsyncFunction = (async () => {}).constructor;
const lines = readline.createInterface({ input: process.stdin });
let before = Promise.resolve();
lines.on("line", (line) => {
  before = before.then(async () => {
    try {
      const value = await new AsyncFunction("service", "sdk", JSON.parse(line))(service, sdk);
      say(JSON.stringify({ value: value === undefined ? null : value }));
    } catch (error) {
      say(JSON.stringify({ error: String(error.message || error) }));
    }
  });
});
lines.on("close", () => process.exit(0));

require("azurite/dist/src/blob/main.js");
