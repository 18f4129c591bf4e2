#include "base/output.hpp"

#include <array>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::output_test {
namespace {

std::string many_lines(int bytes) {
  std::string text;
  for (int i = 0; static_cast<int>(text.size()) < bytes; ++i)
    text += "line " + std::to_string(i) + "\n";
  return text;
}

/// Reads everything from the pipe, from begin() on.
class LateReader {
 public:
  LateReader() {
    REQUIRE(pipe(ends_.data()) == 0);
    REQUIRE(fcntl(ends_[1], F_SETPIPE_SZ, 4096) > 0);
  }
  ~LateReader() { end(); }
  LateReader(const LateReader&) = delete;
  LateReader& operator=(const LateReader&) = delete;

  int input() const { return ends_[1]; }
  void begin() {
    reading_ = std::thread([this] {
      std::array<char, 1000> some{};
      for (ssize_t count = 0; (count = read(ends_[0], some.data(), some.size())) > 0;)
        text_.append(some.data(), static_cast<std::size_t>(count));
    });
  }
  /// Closes the pipe and returns everything that was read.
  std::string end() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
    if (reading_.joinable()) reading_.join();
    if (ends_[0] >= 0) close(std::exchange(ends_[0], -1));
    return text_;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::thread reading_;
  std::string text_;
};

}  // namespace

TEST_CASE("a write that has to wait for its reader reports it once, before it waits") {
  LateReader reader;
  Output output(reader.input());
  const auto text = many_lines(50'000);
  int times = 0;
  output.write(text, [&] {
    ++times;
    reader.begin();
  });
  CHECK(times == 1);
  CHECK(reader.end() == text);
}

TEST_CASE("a write into a file waits for no reader") {
  test::CapturedOutput file;
  Output output(file.fd());
  const auto text = many_lines(50'000);
  output.write(text, [] { FAIL("nobody reads a file"); });
  CHECK(file.text() == text);
}

}  // namespace mailroom::test::output_test
