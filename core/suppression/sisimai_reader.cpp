// One mail at a time is with the program, so that its next line is the answer to that mail.

#include "suppression/sisimai_reader.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "base/json.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

using AnswerJson = nlohmann::json;

/// The program for Perl, a part of the binary, so that it always fits it. On stdin: the size of a mail in
/// bytes, a newline, the mail; and so on. On stdout: a line `ready`, then a line of JSON for each mail: an
/// array with an object for each recipient.
constexpr const char* sisimai_script = R"perl(
use strict;
use warnings;
use JSON::PP ();
use Sisimai;

binmode STDIN;
binmode STDOUT;
$| = 1;
print "ready\n";
while (defined(my $size = <STDIN>)) {
    my $mail = '';
    while (length $mail < $size) {
        read(STDIN, $mail, $size - length $mail, length $mail) or exit;
    }
    my @read;
    eval {
        local $SIG{__WARN__} = sub { };
        # Version 5 has another name for it.
        my $make = Sisimai->can('rise') || Sisimai->can('make');
        my $data = Sisimai->$make(\$mail, delivered => 1);
        for my $one (@{ $data || [] }) {
            my $command = $one->can('smtpcommand') || $one->can('command');
            push @read, {
                address => $one->alias || $one->recipient->address, action => $one->action, status => $one->deliverystatus,
                diagnostic => $one->diagnosticcode, reason => $one->reason, command => $one->$command, code => $one->replycode,
            };
        }
    };
    print JSON::PP->new->ascii->encode(\@read), "\n";
}
)perl";

constexpr std::size_t longest_answer = std::size_t{1} << 20;

std::vector<ForeignRecipient> recipients_in(const std::string& line) {
  std::vector<ForeignRecipient> recipients;
  const auto answer = try_parse_json(sound_utf8(line));
  if (!answer.is_array()) return recipients;
  for (const auto& object : answer) {
    if (!object.is_object() || recipients.size() >= bounce_limits::max_recipients) continue;
    const auto code = text_at(object, "code");
    const auto words = text_at(object, "diagnostic");
    const bool is_said = code.empty() || words.find(code) != std::string::npos;
    recipients.push_back({.address = text_at(object, "address"),
                          .action = text_at(object, "action"),
                          .status = text_at(object, "status"),
                          .diagnostic = is_said ? words : code + " " + words,
                          .reason = text_at(object, "reason"),
                          .command = text_at(object, "command")});
  }
  return recipients;
}

}  // namespace

SisimaiReader::SisimaiReader(Log& log, Options options) : log_(log), options_(std::move(options)) {
  if (options_.command.empty()) options_.command = {"perl", "-e", sisimai_script};
}

SisimaiReader::~SisimaiReader() {
  stop();
}

std::vector<ForeignRecipient> SisimaiReader::read(std::string_view bytes) {
  if (!is_started()) return {};
  const auto line = exchange(std::to_string(bytes.size()) + "\n" + std::string(bytes));
  if (line) return recipients_in(*line);
  stop();
  log_.warn("libsisimai-perl gave no answer to a bounce, which stays unread", {});
  return {};
}

bool SisimaiReader::is_started() {
  if (child_ || is_missing_) return !is_missing_;
  // It may end at once: only its answer shows that Perl has found the library.
  is_missing_ = !start() || exchange("") != "ready";
  if (!is_missing_) return true;
  stop();
  log_.info("bounces in no standard form stay unread: libsisimai-perl is not installed",
            {{"hint", "apt-get install libsisimai-perl"}});
  return false;
}

bool SisimaiReader::start() {
  Pipe input;
  Pipe output;
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  child_.emplace();
  const int failure = child_->start(
      options_.command,
      {{STDIN_FILENO, input.reader()}, {STDOUT_FILENO, output.writer()}, {STDERR_FILENO, nothing}});
  close(nothing);
  input_ = input.take_writer();
  output_ = output.take_reader();
  fcntl(input_, F_SETFL, O_NONBLOCK);
  fcntl(output_, F_SETFL, O_NONBLOCK);
  return failure == 0;
}

void SisimaiReader::stop() {
  if (child_) child_->end();
  child_.reset();
  for (int* const end : {&input_, &output_}) {
    if (*end >= 0) close(*end);
    *end = -1;
  }
}

bool SisimaiReader::write_some(std::string_view& input) const {
  const auto written = ::write(input_, input.data(), input.size());
  if (written < 0) return errno == EAGAIN || errno == EINTR;
  input.remove_prefix(static_cast<std::size_t>(written));
  return true;
}

bool SisimaiReader::read_some(std::string& line) const {
  std::array<char, 16384> piece{};
  const auto size = ::read(output_, piece.data(), piece.size());
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  line.append(piece.data(), static_cast<std::size_t>(size));
  return size > 0 && line.size() <= longest_answer;
}

std::optional<std::string> SisimaiReader::exchange(std::string_view input) {
  const Deadline end = std::chrono::steady_clock::now() + options_.patience;
  std::string line;
  while (line.find('\n') == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    std::array<pollfd, 2> ends{{{output_, POLLIN, 0}, {input.empty() ? -1 : input_, POLLOUT, 0}}};
    if (poll(ends.data(), ends.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return std::nullopt;
    if (ends[1].revents != 0 && !write_some(input)) return std::nullopt;
    if (ends[0].revents != 0 && !read_some(line)) return std::nullopt;
  }
  return line.substr(0, line.find('\n'));
}

}  // namespace mailroom
