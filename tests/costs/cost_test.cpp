// What a token costs the collector, in counts that are the same on every machine.

#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <new>
#include <openssl/crypto.h>
#include <sstream>
#include <unistd.h>

#include "costs/rows.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"

namespace {

std::size_t allocations = 0;
std::size_t openssl_allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* openssl_malloc(std::size_t size, const char* /*file*/, int /*line*/) {
  ++openssl_allocations;
  return std::malloc(size);
}
void* openssl_realloc(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
  ++openssl_allocations;
  return std::realloc(memory, size);
}
void openssl_free(void* memory, const char* /*file*/, int /*line*/) {
  std::free(memory);
}

// Must run before OpenSSL allocates anything; OpenSSL refuses otherwise.
const bool openssl_is_counted = CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1;

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

using namespace mailroom;
using namespace mailroom::test;

namespace {

struct Allocations {
  std::size_t ours = 0;
  std::size_t openssl = 0;
};

/// Counts allocations of the second batch of `count` tokens; the first one allocates the buffers that
/// signer and sink keep.
Allocations allocations_of(int count, std::unique_ptr<compose::Encoder> encoder) {
  const DueRows rows(count);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Output output(nowhere);
  std::ostringstream text;
  Log log({}, text);
  consumer::BatchSigner signer(crypto::Key::from_hex(std::string(64, 'a'), "the test"), log);
  carriers::LineSink sink(std::move(encoder), output);
  const auto emit = [&](std::int64_t number) {
    auto batch = signer.sign({number, 1}, count, rows, sink);
    signer.finish(batch, sink);
    return batch.receipt.counts.emitted;
  };
  emit(1);
  const Allocations before{allocations, openssl_allocations};
  const auto emitted = emit(2);
  const Allocations after{allocations, openssl_allocations};
  CHECK(emitted == count);
  close(nowhere);
  return {after.ours - before.ours, after.openssl - before.openssl};
}

#ifdef MAILROOM_VALGRIND
std::int64_t instructions_of(int tokens) {
  // OpenSSL then runs the same code on every processor.
  const auto run = run_to_end({MAILROOM_VALGRIND, "--tool=callgrind", "--callgrind-out-file=/dev/null",
                               MAILROOM_WRITE_BATCH, std::to_string(tokens)},
                              {{"OPENSSL_ia32cap", "0:0"}});
  INFO(run.errors);
  REQUIRE(run.status == 0);
  const std::string label = "Collected : ";
  const auto at = run.errors.find(label);
  REQUIRE(at != std::string::npos);
  return std::stoll(run.errors.substr(at + label.size()));
}
#endif

}  // namespace

TEST_CASE(
    "a token costs no allocation of our own, and OpenSSL allocates only copies of the saved HMAC state") {
  REQUIRE(openssl_is_counted);
  for (const auto& make : {compose::make_csv_encoder, +[] { return compose::make_jsonl_encoder(); }}) {
    const auto few = allocations_of(500, make());
    const auto many = allocations_of(1500, make());
    CHECK(many.ours == few.ours);
    CHECK((many.openssl - few.openssl) / 1000 <= 2);
  }
}

#ifdef MAILROOM_VALGRIND
TEST_CASE("a token stays below the limit of instructions in the collector") {
  const auto a_token = (instructions_of(3000) - instructions_of(1000)) / 2000;
  CAPTURE(a_token);
  CHECK(a_token > 1'000);
  CHECK(a_token <= MAILROOM_MAX_INSTRUCTIONS);
}
#endif
