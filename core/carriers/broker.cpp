// The texts: what is wrong with a server, and where to change it. And the answers of publishers.

#include "carriers/broker.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"

namespace mailroom::carriers {
namespace {

constexpr Milliseconds first_pause{250};
constexpr Milliseconds longest_broker_pause{5'000};

const char* problem_with(BrokerFault fault) {
  switch (fault) {
    case BrokerFault::none:
      break;
    case BrokerFault::unreachable:
      return "cannot be reached";
    case BrokerFault::tls:
      return "cannot be used over TLS";
    case BrokerFault::certificate:
      return "has a certificate that is not accepted";
    case BrokerFault::login:
      return "does not let mailroom in";
    case BrokerFault::refused:
      return "refuses what mailroom needs";
    case BrokerFault::missing:
      return "lacks what the sink needs";
  }
  return "works";
}

}  // namespace

std::string describe_failure(const std::string& server, const BrokerFailure& failure) {
  return fmt::format("{} {}: {}", server, problem_with(failure.fault), shown_text(failure.text));
}

std::string hint_for(BrokerFault fault) {
  switch (fault) {
    case BrokerFault::none:
    case BrokerFault::missing:
      break;
    case BrokerFault::unreachable:
      return "start the server, let the firewall pass its port, or name another server in sink.to";
    case BrokerFault::tls:
      return "the server must offer TLS 1.2 or newer on that port; lines go over a network only with TLS";
    case BrokerFault::certificate:
      return "name the server in sink.to as its certificate does, renew the certificate, or set sink.ca_file to that of "
             "its authority";
    case BrokerFault::login:
      return "check the user in sink.to, and sink.password_file or sink.credentials_file; for RabbitMQ also the virtual "
             "host after the servers";
    case BrokerFault::refused:
      return "ask the operator of the broker which rights this user has";
  }
  return {};
}

config::ServerUrl parse_broker_url(std::string_view text, const std::vector<config::UrlScheme>& schemes,
                                   std::string_view key) {
  return config::parse_server_url(text,
                                  {.subject = key, .schemes = schemes, .password_key = "sink.password_file"});
}

void require_loopback(const config::ServerUrl& url, const char* hint) {
  for (const auto& server : url.servers) {
    if (server.is_loopback()) continue;
    throw Error(ExitCode::configuration,
                fmt::format("sink.to names {}, which is not on this host, without TLS", server.address()),
                hint);
  }
}

std::string broker_password(const config::Settings& settings) {
  if (settings.sink.password_file.empty()) {
    throw Error(ExitCode::configuration, "sink.password_file is not set, and sink.to names a user",
                "write the user's password into a file that only this user can read, and name it there");
  }
  return read_password_file(settings.sink.password_file, settings.signing.allow_readable_key,
                            "sink.password_file");
}

void require_usable(const std::string& server, const BrokerFailure& failure) {
  if (failure.is_lasting())
    throw Error(ExitCode::configuration, describe_failure(server, failure), hint_for(failure.fault));
}

BrokerPublisher::BrokerPublisher(const config::ServerUrl& url, BrokerPublishing publishing)
    : publishing_(std::move(publishing)),
      server_(url.servers.front().address()),
      trouble_("not connected yet"),
      name_(url.addresses()) {}

std::vector<delivery::Answer> BrokerPublisher::take() {
  const std::lock_guard lock(mutex_);
  ready_.clear();
  unfinished_ -= answers_.size();
  return std::exchange(answers_, {});
}

void BrokerPublisher::answer(std::int64_t message, TimePoint since, delivery::Verdict verdict, int code,
                             std::string reply) {
  if (answers_.empty()) ready_.signal();
  answers_.push_back({.id = message,
                      .verdict = verdict,
                      .sink = server_,
                      .code = code,
                      .reply = std::move(reply),
                      .took = steady_now() - since,
                      .ended = wall_now()});
}

void BrokerPublisher::give_back(std::int64_t message) {
  if (answers_.empty()) ready_.signal();
  answers_.push_back({.id = message, .was_tried = false});
}

Milliseconds BrokerPublisher::next_pause() {
  pause_ = std::clamp(pause_ * 2, first_pause, longest_broker_pause);
  return pause_;
}

std::string filled_name(std::string_view text, std::string_view queue, std::string_view action) {
  std::string filled;
  while (!text.empty()) {
    const auto brace = std::min(text.find('{'), text.size());
    filled += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.starts_with("{queue}")) {
      filled += queue;
      text.remove_prefix(7);
    } else if (text.starts_with("{action}")) {
      filled += action;
      text.remove_prefix(8);
    } else if (!text.empty()) {
      filled += text.front();
      text.remove_prefix(1);
    }
  }
  return filled;
}

}  // namespace mailroom::carriers
