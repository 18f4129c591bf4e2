// Reads bounces in no standard form by libsisimai-perl, in a process of its own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "bounce/foreign_recipient.hpp"
#include "process/child.hpp"

namespace mailroom {

/// Starts Perl at the first mail and keeps it. One that does not answer in time is killed, and another one is
/// started for the next mail. Where Perl or libsisimai-perl is missing the log says so once, and no mail is
/// understood. For one thread at a time.
class SisimaiReader final : public ForeignReader {
 public:
  struct Options {
    std::vector<std::string> command{};  ///< empty: Perl with our program
    std::chrono::milliseconds patience{10'000};
  };

  explicit SisimaiReader(Log& log) : SisimaiReader(log, Options()) {}
  SisimaiReader(Log& log, Options options);
  ~SisimaiReader() override;
  SisimaiReader(const SisimaiReader&) = delete;
  SisimaiReader& operator=(const SisimaiReader&) = delete;

  std::vector<ForeignRecipient> read(std::string_view bytes) override;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  bool is_started();
  bool start();
  void stop();
  /// The next line that the program writes after it has read `input`; nullopt if it ends or takes too long.
  std::optional<std::string> exchange(std::string_view input);
  /// False once the descriptor is of no use.
  bool write_some(std::string_view& input) const;
  bool read_some(std::string& line) const;

  Log& log_;
  Options options_;
  std::optional<Child> child_;
  int input_ = -1;
  int output_ = -1;
  bool is_missing_ = false;
};

}  // namespace mailroom
