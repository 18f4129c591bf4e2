#include "broker/handover_rig.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "support/catch.hpp"

namespace mailroom::test {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

std::string from_script(const char* name) {
  const auto* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(fmt::format("{} is not set: run this by its script", name));
  return value;
}

pid_t BrokerNodes::pid_of(int node) const {
  pid_t pid = 0;
  if (!(std::ifstream(fmt::format("{}/node{}.pid", directory_, node)) >> pid))
    throw std::runtime_error("no such node");
  return pid;
}

void BrokerNodes::kill(int node) {
  const auto pid = pid_of(node);
  if (::kill(pid, SIGKILL) != 0) throw std::runtime_error("the node is gone already");
  killed_.push_back(node);
  // It may stay a zombie.
  eventually([&] {
    std::ifstream text(fmt::format("/proc/{}/cmdline", pid));
    return text.get() == std::ifstream::traits_type::eof();
  });
}

void BrokerNodes::stop(int node) const {
  ::kill(pid_of(node), SIGSTOP);
}

void BrokerNodes::resume(int node) const {
  ::kill(pid_of(node), SIGCONT);
}

void BrokerNodes::start(int node) {
  if (std::system(fmt::format("{}/start {}", directory_, node).c_str()) != 0)
    throw std::runtime_error("no start");
  std::erase(killed_, node);
}

void BrokerNodes::restore() {
  for (const int node : {1, 2, 3})
    resume(node);
  for (const int node : std::vector(killed_))
    start(node);
}

std::vector<TestLine> make_lines(int count, int tokens, const std::string& prefix) {
  std::vector<TestLine> lines;
  for (int i = 0; i < count; ++i) {
    std::string body = R"({"tokens":[)";
    for (int token = 0; token < tokens; ++token)
      body +=
          fmt::format(R"({}{{"id":{},"action":"activation","email":"user{}@example.com","token":"{:0>80}"}})",
                      token > 0 ? "," : "", i * tokens + token, token, i);
    lines.push_back({.message_id = fmt::format("{}{}.digest", prefix, i), .body = body + "]}"});
  }
  return lines;
}

delivery::Message parcel_of(const TestLine& line, std::int64_t id) {
  return {.id = id,
          .queue = "mailroom",
          .batch = 7,
          .attempt = line.submitted,
          .line = 1,
          .action = "activation",
          .tokens = {1, 2, 3},
          .created_at = 1795438488,
          .message_id = line.message_id,
          .body = line.body};
}

void Answered::await_more() const {
  const int before = accepted;
  if (!eventually([&] { return accepted > before + lines_in_flight; }, patience))
    throw std::runtime_error("no more lines are accepted");
}

void Answered::await_wait() const {
  const int before = waiting;
  if (!eventually([&] { return waiting > before; }, patience))
    throw std::runtime_error("no line is told to wait");
}

void hand_over(delivery::Carrier& carrier, std::vector<TestLine>& lines, Answered* answered) {
  const auto begun = Steady::now();
  const auto until = begun + patience;
  std::multimap<Steady::time_point, std::size_t> due;
  // A server that takes nothing may say so only when it gets a line, and a carrier does not know what becomes
  // of those that are on their way by then: until there is an answer, they follow each other by a second.
  bool is_answered = false;
  const auto limit = [&]() -> std::size_t {
    return is_answered ? lines_in_flight : 1 + static_cast<std::size_t>((Steady::now() - begun) / 1s);
  };
  for (std::size_t i = 0; i < lines.size(); ++i)
    due.emplace(Steady::now(), i);
  while ((!due.empty() || carrier.unfinished() > 0) && Steady::now() < until) {
    while (!due.empty() && due.begin()->first <= Steady::now() && carrier.unfinished() < limit()) {
      auto& line = lines[due.begin()->second];
      ++line.submitted;
      carrier.submit(parcel_of(line, static_cast<std::int64_t>(due.begin()->second)));
      due.erase(due.begin());
    }
    pollfd ready{carrier.fd(), POLLIN, 0};
    poll(&ready, 1, 20);
    for (auto& answer : carrier.take()) {
      is_answered = true;
      const auto id = static_cast<std::size_t>(answer.id);
      auto& line = lines.at(id);
      line.accepted = answer.verdict == delivery::Verdict::accepted;
      line.rejected = answer.verdict == delivery::Verdict::rejected;
      if (!line.accepted && !line.rejected) due.emplace(Steady::now() + 250ms, id);
      if (answered != nullptr && !line.rejected) ++(line.accepted ? answered->accepted : answered->waiting);
      line.answers.push_back(std::move(answer));
    }
  }
}

void hand_over_beside(delivery::Carrier& carrier, std::vector<TestLine>& lines,
                      const std::function<void(const Answered&)>& fault) {
  constexpr int enough = 300;
  Answered answered;
  const Fault thread([&] { return answered.accepted >= enough; }, [&] { fault(answered); });
  hand_over(carrier, lines, &answered);
}

delivery::Answer hand_over_once(delivery::Carrier& carrier, const TestLine& line) {
  carrier.submit(parcel_of(line, 1));
  pollfd ready{carrier.fd(), POLLIN, 0};
  poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
  auto answers = carrier.take();
  if (answers.size() != 1) throw std::runtime_error("no answer");
  return answers[0];
}

Fault::Fault(std::function<bool()> begins, std::function<void()> fault)
    : thread_([this, begins = std::move(begins), fault = std::move(fault)] {
        try {
          if (!eventually(begins, patience)) throw std::runtime_error("it did not begin");
          fault();
        } catch (const std::exception& error) {
          failure_ = error.what();
        }
      }) {}

Fault::~Fault() {
  thread_.join();
  CHECK(failure_ == "");
}

namespace {

/// The ids that were found more often than once, and than once more for each time in `unknown`.
std::vector<std::string> repeated_beyond(const std::map<std::string, int>& unknown,
                                         const std::map<std::string, int>& found) {
  std::vector<std::string> repeated;
  for (const auto& [id, count] : found) {
    const auto place = unknown.find(id);
    if (count > 1 + (place == unknown.end() ? 0 : place->second)) repeated.push_back(id);
  }
  return repeated;
}

}  // namespace

void require_each(const std::vector<TestLine>& lines, const std::map<std::string, int>& found) {
  std::vector<std::string> missing;
  std::vector<std::string> open;
  for (const auto& line : lines) {
    if (!line.accepted) open.push_back(line.message_id);
    if (!found.contains(line.message_id)) missing.push_back(line.message_id);
  }
  CHECK(open == std::vector<std::string>());
  CHECK(missing == std::vector<std::string>());
}

std::string refusal_of(const std::function<void()>& start) {
  try {
    start();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return std::string(error.what()) + "; " + error.hint();
  }
  return "no error";
}

void fill_disk(const std::string& directory) {
  std::ofstream file(directory + "/ballast", std::ios::binary);
  const std::string block(65'536, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void require_each_once(const std::vector<TestLine>& lines, const std::map<std::string, int>& found) {
  require_each(lines, found);
  CHECK(repeated_beyond({}, found) == std::vector<std::string>());
  CHECK(found.size() == lines.size());
}

void require_each_once_unless_unknown(const std::vector<TestLine>& lines,
                                      const std::map<std::string, int>& found) {
  require_each(lines, found);
  std::map<std::string, int> unknown;
  for (const auto& line : lines)
    unknown[line.message_id] = static_cast<int>(
        std::ranges::count(line.answers, delivery::Verdict::unknown, &delivery::Answer::verdict));
  CHECK(repeated_beyond(unknown, found) == std::vector<std::string>());
  CHECK(found.size() == lines.size());
}

std::vector<std::string> lacking(const std::string& text, const std::vector<std::string>& parts) {
  std::vector<std::string> missing;
  for (const auto& part : parts) {
    if (text.find(part) == std::string::npos) missing.push_back(part + " in: " + text);
  }
  return missing;
}

}  // namespace mailroom::test
