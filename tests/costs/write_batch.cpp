// write_batch COUNT: signs COUNT tokens and writes them to stdout as one line, so that its instructions can
// be counted.

#include <iostream>
#include <string>
#include <unistd.h>

#include "costs/rows.hpp"

using namespace mailroom;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const int tokens = std::stoi(arguments[1]);
  const test::DueRows rows(tokens);
  Output output(STDOUT_FILENO);
  Log log({}, std::cerr);
  consumer::BatchSigner signer(crypto::Key::from_hex(std::string(64, 'a'), "the test"), log);
  carriers::LineSink sink(compose::make_csv_encoder(), output);
  auto batch = signer.sign({1, 1}, tokens, rows, sink);
  signer.finish(batch, sink);
  return batch.receipt.counts.emitted == tokens ? 0 : 1;
}
