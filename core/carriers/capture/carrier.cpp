// The directory is part of the relay's URL, so that a list of relays can be split at its commas.

#include "carriers/capture/carrier.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/server_url.hpp"
#include "mail/link_template.hpp"

namespace mailroom::capture {
namespace {

constexpr std::string_view capture_scheme = "capture";
constexpr std::string_view directory_from = "capture://";

}  // namespace

config::RelayTarget capture_relay(const std::string& directory) {
  return {.scheme = std::string(capture_scheme),
          .url = std::string(directory_from) + percent_encoded(directory)};
}

bool captures(const config::RelayPath& path) {
  return std::ranges::count(path.targets, capture_scheme, &config::RelayTarget::scheme) > 0;
}

std::string capture_directory(const config::RelayTarget& relay) {
  const auto directory = config::percent_decoded(std::string_view(relay.url).substr(directory_from.size()));
  if (directory && directory->starts_with('/')) return *directory;
  throw Error(ExitCode::configuration, "a relay that captures mails names no directory",
              "mailroom send --capture DIR captures mails without a relay");
}

CaptureCarrier::CaptureCarrier(std::string directory) : maildir_(std::move(directory)) {}

void CaptureCarrier::submit(delivery::Message message) {
  waiting_.push_back(std::move(message));
  ready_.signal();
}

std::vector<delivery::Answer> CaptureCarrier::take() {
  ready_.clear();
  auto answers = std::exchange(answers_, {});
  if (waiting_.empty()) return answers;
  for (const auto& message : std::exchange(waiting_, {}))
    answers.push_back(keep(message));
  maildir_.flush();
  return answers;
}

delivery::Answer CaptureCarrier::keep(const delivery::Message& message) {
  const auto began = steady_now();
  delivery::Answer answer{
      .id = message.id, .verdict = delivery::Verdict::accepted, .sink = std::string(capture_sink)};
  try {
    const auto& envelope = message.envelope;
    const auto name = maildir_.write(
        fmt::format("Return-Path: <{}>\r\nDelivered-To: {}\r\n", envelope.from, envelope.to), message.body);
    answer.reply = fmt::format("kept as {}/new/{}", maildir_.directory(), name);
  } catch (const Error& error) {
    answer.verdict = delivery::Verdict::unavailable;
    answer.reply = error.what();
  }
  answer.took = steady_now() - began;
  answer.ended = wall_now();
  return answer;
}

void CaptureCarrier::cancel() {
  for (const auto& message : std::exchange(waiting_, {}))
    answers_.push_back({.id = message.id, .was_tried = false});
  if (!answers_.empty()) ready_.signal();
}

std::unique_ptr<delivery::Carrier> make_capture_carrier(const config::RelayPath& path) {
  return std::make_unique<CaptureCarrier>(capture_directory(path.targets.front()));
}

extern const carriers::RelayFunctions capture_carrier;
const carriers::RelayFunctions capture_carrier{make_capture_carrier, check_capture};

}  // namespace mailroom::capture
