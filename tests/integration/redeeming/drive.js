// Redeems with the Node example what it is asked: for each line of the file REQUESTS, {"action", "token", "code", "copies", "keys"}, it
// redeems the token that many times at once, and prints a line "RESULT ACCOUNT" for each.
//
// usage: drive.js REQUESTS
// The example is redeeming.js next to this file. The environment has the connection (PGHOST, PGDATABASE, PGUSER).
const { constants, openSync } = require('fs');
const { Socket } = require('net');
const { createInterface } = require('readline');
const { Pool } = require('pg');
const { activate, loadKey, recover } = require('./redeeming.js');

const setPassword = (client, account) => client.query('INSERT INTO passwords (account) VALUES ($1)', [account]);

async function redeem(pool, keys, { action, token, code }) {
  try {
    const { result, account } =
      action === 'activation'
        ? await activate(pool, keys, token)
        : await recover(pool, keys, token, code, setPassword);
    console.log(`${result} ${account || ''}`);
  } catch (error) {
    console.log(`raised ${error.code || error.message}`);
  }
}

async function serve() {
  // As a socket: a thread that reads a file would keep the program from ending.
  const input = new Socket({ fd: openSync(process.argv[2], constants.O_RDONLY | constants.O_NONBLOCK), writable: false });
  for await (const line of createInterface({ input })) {
    const request = JSON.parse(line);
    const keys = request.keys.map(loadKey);
    const pool = new Pool({ max: request.copies });
    await Promise.all(Array.from({ length: request.copies }, () => redeem(pool, keys, request)));
    await pool.end();
  }
}

serve();
