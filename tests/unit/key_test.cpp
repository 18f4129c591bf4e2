#include "crypto/key.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::key_test {
namespace {

const std::string dead_beef = "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef";

crypto::Key key_of(const std::string& hex) {
  return crypto::Key::from_hex(hex, "a test");
}

/// The error that `attempt` throws.
template <typename Attempt>
Error error_of(Attempt attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error came");
  throw std::logic_error("FAIL returned");
}

}  // namespace

TEST_CASE("a key is read from its digits, in either case") {
  CHECK(key_of(dead_beef).bytes()[0] == 0xde);
  CHECK(key_of(dead_beef).bytes()[31] == 0xef);
  std::string upper = dead_beef;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c < 'a' ? c : static_cast<char>(c - 32); });
  CHECK(key_of(upper).bytes() == key_of(dead_beef).bytes());
  CHECK(key_of(dead_beef).fingerprint() == "8200cf0ce11447bf");
}

TEST_CASE("a malformed key is refused without being shown") {
  const auto no_digit = "the signing key in HERE contains a character that is not a hexadecimal digit";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the signing key in HERE has 0 hexadecimal digits, and needs 64"},
      {"a", "the signing key in HERE has 1 hexadecimal digit, and needs 64"},
      {dead_beef.substr(1), "the signing key in HERE has 63 hexadecimal digits, and needs 64"},
      {dead_beef + "0", "the signing key in HERE has 65 hexadecimal digits, and needs 64"},
      {dead_beef.substr(1) + "g", no_digit},
      {dead_beef + "\n", no_digit},
      {" " + dead_beef, no_digit},
      {"0x" + dead_beef, no_digit},
  };
  for (const auto& [text, message] : cases) {
    const auto error = error_of([&text = text] { crypto::Key::from_hex(text, "HERE"); });
    CHECK(error.what() == message);
    CHECK(error.hint() == "make one with: openssl rand -hex 32");
    CHECK(error.code() == ExitCode::configuration);
  }
}

TEST_CASE("a key file has the digits and at most one line end") {
  const test::TemporaryDirectory directory;
  for (const std::string end : {"", "\n", "\r\n"}) {
    CHECK(crypto::Key::from_file(directory.write("key", dead_beef + end), false).bytes() ==
          key_of(dead_beef).bytes());
  }
  for (const std::string end : {"\n\n", "\r", " \n", "\n\r\n"}) {
    const auto path = directory.write("key", dead_beef + end);
    CHECK(error_of([&] { crypto::Key::from_file(path, false); }).what() ==
          "the signing key in " + path + " contains a character that is not a hexadecimal digit");
  }
  const auto path = directory.write("key", std::string(5000, 'a'));
  CHECK(error_of([&] { crypto::Key::from_file(path, false); }).what() ==
        "the key file " + path + " contains more than a key");
}

TEST_CASE("a key file that everyone can read is refused unless that is allowed") {
  const test::TemporaryDirectory directory;
  for (const unsigned mode : {0600U, 0400U, 0640U, 0440U}) {
    CHECK_NOTHROW(
        crypto::Key::from_file(directory.write("key" + std::to_string(mode), dead_beef, mode), false));
  }
  const auto path = directory.write("open", dead_beef, 0644);
  const auto error = error_of([&] { crypto::Key::from_file(path, false); });
  CHECK(error.what() == "everyone can read the key file " + path + " (mode 0644)");
  CHECK(error.hint() == "chmod 640 " + path + ", or set signing.allow_readable_key: true");
  CHECK(error.code() == ExitCode::configuration);
  CHECK(crypto::Key::from_file(path, true).bytes() == key_of(dead_beef).bytes());
}

TEST_CASE("a key file that others can write is refused, even if reading it is allowed") {
  const test::TemporaryDirectory directory;
  for (const unsigned mode : {0602U, 0620U, 0660U, 0666U}) {
    const auto path = directory.write("writable" + std::to_string(mode), dead_beef, mode);
    const auto error = error_of([&] { crypto::Key::from_file(path, true); });
    CHECK(std::string(error.what()).rfind("others can replace the key in the file " + path + " (mode 0", 0) ==
          0);
    CHECK(error.hint() == "chmod go-w " + path);
    CHECK(error.code() == ExitCode::configuration);
  }
}

TEST_CASE("a link to a key file is judged by its target") {
  const test::TemporaryDirectory directory;
  const auto link = (directory.path() / "link").string();
  std::filesystem::create_symlink(directory.write("own", dead_beef, 0600), link);
  CHECK(crypto::Key::from_file(link, false).bytes() == key_of(dead_beef).bytes());
  std::filesystem::remove(link);
  std::filesystem::create_symlink(directory.write("open", dead_beef, 0604), link);
  CHECK(error_of([&] { crypto::Key::from_file(link, false); }).what() ==
        "everyone can read the key file " + link + " (mode 0604)");
}

TEST_CASE("a FIFO without a writer is refused") {
  const test::TemporaryDirectory directory;
  const auto path = (directory.path() / "fifo").string();
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(error_of([&] { crypto::Key::from_file(path, false); }).what() ==
        "the signing key in " + path + " has 0 hexadecimal digits, and needs 64");
}

TEST_CASE("a pipe is read to its end, even if the writer is slow") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  std::optional<crypto::Key> key;
  std::thread reader([&] { key = crypto::Key::from_file("/dev/fd/" + std::to_string(ends[0]), false); });
  const auto first = write(ends[1], dead_beef.data(), 20);
  // The reader has taken the first part, and must wait for the rest.
  for (int unread = 1; unread > 0 && ioctl(ends[0], FIONREAD, &unread) == 0;)
    std::this_thread::yield();
  const auto rest = write(ends[1], dead_beef.data() + 20, dead_beef.size() - 20);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  CHECK(first + rest == 64);
  CHECK(key->bytes() == key_of(dead_beef).bytes());
}

TEST_CASE("the error for an unreadable key file names the file") {
  const test::TemporaryDirectory directory;
  const auto missing = (directory.path() / "missing").string();
  const auto error = error_of([&] { crypto::Key::from_file(missing, false); });
  CHECK(error.what() == "cannot read the key file " + missing + ": No such file or directory");
  CHECK(error.code() == ExitCode::configuration);
  CHECK(error.hint() ==
        "it is set by signing.key_file or MAILROOM_SECRET_KEY_FILE, and this user must be able to read it");
  CHECK(error_of([&] { crypto::Key::from_file(missing, false, "the setting"); }).hint() ==
        "it is set by the setting, and this user must be able to read it");
  const auto itself = directory.path().string();
  CHECK(error_of([&] { crypto::Key::from_file(itself, true); }).what() ==
        "cannot read the key file " + itself + ": Is a directory");
}

TEST_CASE("a key file is read from the credentials of the service") {
  const test::TemporaryDirectory directory;
  const test::TemporaryDirectory credentials;
  const auto own = directory.write("signing.key", dead_beef);
  const auto other = directory.write("other.key", dead_beef);
  const std::string copied(64, 'a');
  const auto name = GENERATE(std::string("signing.key"), std::string("mailroom_signing.key"));
  credentials.write(name, copied, 0440);
  setenv("CREDENTIALS_DIRECTORY", credentials.path().c_str(), 1);
  CHECK(crypto::Key::from_file(own, false).bytes() == key_of(copied).bytes());
  CHECK(crypto::Key::from_file("/nonexistent/signing.key", false).bytes() == key_of(copied).bytes());
  CHECK(crypto::Key::from_file(other, false).bytes() == key_of(dead_beef).bytes());
  // The message names the file that has to be there.
  CHECK(error_of([&] { crypto::Key::from_file("/nonexistent/new.key", false); }).what() ==
        std::string("cannot read the key file /nonexistent/new.key: No such file or directory"));
  unsetenv("CREDENTIALS_DIRECTORY");
  CHECK(crypto::Key::from_file(own, false).bytes() == key_of(dead_beef).bytes());
}

}  // namespace mailroom::test::key_test
