// What carries lines to the program of sink.exec, and the grammar of its answers (docs/exec.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.hpp"
#include "carriers/carriers.hpp"
#include "carriers/exec/child.hpp"

namespace mailroom::exec {

/// One line that a program has answered.
struct ExecAnswer {
  delivery::Verdict verdict = delivery::Verdict::accepted;
  std::string batch;                    ///< the first word of the line that it answers
  std::optional<std::int64_t> token{};  ///< of a failure; nullopt: of every token
  std::string text;                     ///< the rest of the line
};

/// Reads `ok BATCH [TEXT]` or `fail BATCH TOKEN-ID|* retry|reject [REASON]`; nullopt for anything else.
std::optional<ExecAnswer> parse_exec_answer(std::string_view line);

/// The words of a command, separated by blanks. Quotes and backslashes work as in a shell, and nothing else
/// does: no variables, no patterns, no redirections. Nullopt if a quote is not closed, or nothing follows a
/// backslash.
std::optional<std::vector<std::string>> command_words(std::string_view command);

/// Starts a program, writes lines to its stdin, and reads its answers; docs/exec.md is the protocol. A
/// program that ends, closes its answers or does not answer is started again. A line that it has read is
/// unknown then; one that it has not read goes to the next program, or is unavailable if this one has
/// answered nothing. Without a thread: fd() is an epoll descriptor, and take() does the work.
class ExecCarrier final : public delivery::Carrier {
 public:
  struct Options {
    std::vector<std::string> words;  ///< the program and its arguments
    config::AckOn ack_on = config::AckOn::descriptor_3;
    Milliseconds timeout{};  ///< without an answer, while lines wait for one
  };

  /// Starts the program. Throws Error(configuration) if that fails.
  ExecCarrier(Options options, Log& log);
  /// Closes the program's stdin and waits for its end, but not for long.
  ~ExecCarrier() override;
  ExecCarrier(const ExecCarrier&) = delete;
  ExecCarrier& operator=(const ExecCarrier&) = delete;

  void submit(delivery::Message message) override;
  int fd() const override { return events_; }
  std::vector<delivery::Answer> take() override;
  std::size_t unfinished() const override { return given_.size() + answers_.size(); }
  void cancel() override;
  bool has_session() const override { return child_ != nullptr; }
  std::vector<std::string> endpoints() const override { return {name_}; }

 private:
  struct Given {
    delivery::Message message;
    std::uint64_t end = 0;  ///< how much the program has read when it has read this; 0 if it is not to yet
    TimePoint submitted{};
    std::vector<delivery::TokenVerdict> failures{};
  };

  void start();
  void try_start();
  void watch(int fd, std::uint32_t events, int operation) const;
  void serve();
  void write_lines();
  void fill();
  void read_answers(std::size_t at_most);
  /// How much of what was written the program has read.
  std::uint64_t read_so_far() const;
  /// Ends a program that reads no more, once it has answered what it has read.
  void end_if_deaf();
  void take_lines();
  void take_answer(std::string_view line);
  void note_stranger(std::string_view line);
  bool complete(Given& given, ExecAnswer answer);
  void answer(const Given& given, delivery::Verdict verdict, std::string reply);
  /// The program has ended, or is ended now.
  void end(const std::string& why);
  void check_time();
  void arm(TimePoint when) const;

  Options options_;
  Log& log_;
  std::string name_;
  int events_;
  int timer_;
  EventFd ready_;  ///< answers_ is not empty
  std::unique_ptr<ExecChild> child_;
  std::map<std::string, Given, std::less<>> given_;  ///< by message id
  std::deque<std::string> unsent_;                   ///< the message ids of those that are to be written
  std::string output_;                               ///< being written
  std::uint64_t filled_ = 0;                         ///< bytes that this program was to get so far
  std::uint64_t written_ = 0;                        ///< of these, in its stdin
  bool waits_to_write_ = false;
  bool takes_input_ = false;
  std::string input_;  ///< the begin of an answer
  std::vector<delivery::Answer> answers_;
  bool has_answered_ = false;  ///< this program
  std::int64_t strangers_ =
      0;  ///< lines of this program that answer nothing, since it has answered something
  TimePoint progress_{};
  TimePoint next_start_{};
  Milliseconds pause_{0};
  std::string why_;  ///< the program does not run
};

std::unique_ptr<delivery::Carrier> make_exec_carrier(const carriers::CarrierSetup& setup);
std::vector<carriers::SinkFinding> check_exec(const config::Settings& settings);

}  // namespace mailroom::exec
