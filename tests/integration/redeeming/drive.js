// Redeems TOKEN with the Node example, COPIES times at once, and prints a line "RESULT ACCOUNT" for each.
//
// usage: drive.js ACTION TOKEN CODE COPIES KEY_FILE...
// The example is redeeming.js next to this file. The environment has the connection (PGHOST, PGDATABASE, PGUSER).
const { Pool } = require('pg');
const { activate, loadKey, recover } = require('./redeeming.js');

const [action, token, code, copies, ...keyFiles] = process.argv.slice(2);
const keys = keyFiles.map(loadKey);
const pool = new Pool({ max: Number(copies) });

const setPassword = (client, account) => client.query('INSERT INTO passwords (account) VALUES ($1)', [account]);

async function redeem() {
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

Promise.all(Array.from({ length: Number(copies) }, redeem)).then(() => pool.end());
