// verify: what independent implementations say of requests.
//
// Reads {"secrets": [...], "public_keys": [...], "requests": [{"headers": {...},
// "body": base64}]} and prints, for each request, which of the secrets and keys
// verify it: by the package standardwebhooks, by svix, and, for what these do
// not know, by node's own cryptography.
"use strict";

const crypto = require("crypto");
const fs = require("fs");
const standardwebhooks = require("standardwebhooks");
const svix = require("svix");

function accepts(check) {
  try {
    check();
    return true;
  } catch (error) {
    return false;
  }
}

// Of one version, without it.
function signatures(headers, version) {
  return headers["webhook-signature"]
    .split(" ")
    .filter((text) => text.startsWith(version + ","))
    .map((text) => Buffer.from(text.slice(version.length + 1), "base64"));
}

function byKey(publicKey, headers, body) {
  const x = Buffer.from(publicKey.slice("whpk_".length), "base64").toString("base64url");
  const key = crypto.createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const signed = Buffer.concat([
    Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`),
    body,
  ]);
  return signatures(headers, "v1a").some((text) => crypto.verify(null, signed, key, text));
}

function byOlderScheme(secret, headers, body) {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const mac = crypto
    .createHmac("sha256", key)
    .update(`${headers["x-webhook-timestamp"]}.`)
    .update(body)
    .digest("hex");
  return headers["x-webhook-signature"] === `v1=${mac}`;
}

function judge({ headers, body: base64 }, secrets, publicKeys) {
  const body = Buffer.from(base64, "base64");
  const by = (Webhook) =>
    secrets.filter((secret) => accepts(() => new Webhook(secret).verify(body, headers)));
  return {
    standardwebhooks: by(standardwebhooks.Webhook),
    svix: by(svix.Webhook),
    keys: publicKeys.filter((key) => byKey(key, headers, body)),
    older: secrets.filter((secret) => byOlderScheme(secret, headers, body)),
  };
}

const { secrets, public_keys, requests } = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify(requests.map((request) => judge(request, secrets, public_keys))));
