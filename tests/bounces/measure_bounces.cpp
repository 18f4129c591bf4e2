// measure_bounces DIRECTORY: reads the .eml files of DIRECTORY, compares them with its expected.csv
// (file,recipient,status,reply_code,reason,hard), and prints how many recipients were found and judged right.

#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "bounce/bounce.hpp"

namespace {

using namespace mailroom;

struct Expected {
  std::string reason;
  bool is_hard = false;
};

struct Counts {
  int files = 0;
  int expected = 0;
  int found = 0;
  int hard_expected = 0;
  int hard_called = 0;
  int hard_right = 0;
  int complaints = 0;
  int complaints_found = 0;
  int replies = 0;
  int replies_found = 0;
  int unrecognised = 0;
};

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::vector<Expected>> read_expected(const std::filesystem::path& path) {
  std::map<std::string, std::vector<Expected>> expected;
  std::istringstream lines(read_all(path));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const auto cells = split(trimmed(line), ',');
    if (cells.size() < 6) continue;
    expected[std::string(cells[0])].push_back({std::string(cells[4]), cells[5] == "true"});
  }
  return expected;
}

void compare_recipient(const std::string& name, const Expected& expected, const bounce::BounceRecipient& read,
                       Counts& counts) {
  ++counts.found;
  const bool is_hard = read.kind == bounce::BounceKind::hard;
  if (is_hard) ++counts.hard_called;
  if (is_hard && expected.is_hard) ++counts.hard_right;
  if (expected.reason == "feedback" && read.reason == bounce::BounceReason::feedback)
    ++counts.complaints_found;
  if (expected.reason == "vacation" && read.kind == bounce::BounceKind::auto_reply) ++counts.replies_found;
  const bool is_delivered = read.kind == bounce::BounceKind::delivered;
  if (is_hard == expected.is_hard && is_delivered == (expected.reason == "delivered")) return;
  fmt::print("{:<30} expected {}{}, read {} {} {} {} '{}'\n", name, expected.reason,
             expected.is_hard ? " (hard)" : "", bounce::bounce_kind_name(read.kind),
             bounce::bounce_reason_name(read.reason), read.status, read.code, read.diagnostic);
}

void compare(const std::string& name, const std::vector<Expected>& expected,
             const std::optional<bounce::Bounce>& read, bool is_standard, Counts& counts) {
  ++counts.files;
  if (!read) {
    ++counts.unrecognised;
    fmt::print("{:<30} expected {}, read as no bounce\n", name, expected.front().reason);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ++counts.expected;
    if (expected[i].is_hard) ++counts.hard_expected;
    if (expected[i].reason == "feedback") ++counts.complaints;
    if (expected[i].reason == "vacation") ++counts.replies;
    if (read && i < read->recipients.size()) {
      compare_recipient(name, expected[i], read->recipients[i], counts);
    } else if (read && (is_standard || read->is_standard)) {
      fmt::print("{:<30} recipient {} not found\n", name, i + 1);
    }
  }
}

Counts sum_of(Counts sum, const Counts& more) {
  for (const auto member :
       {&Counts::files, &Counts::expected, &Counts::found, &Counts::hard_expected, &Counts::hard_called,
        &Counts::hard_right, &Counts::complaints, &Counts::complaints_found, &Counts::replies,
        &Counts::replies_found, &Counts::unrecognised})
    sum.*member += more.*member;
  return sum;
}

void print_counts(const char* title, const Counts& counts) {
  const auto percent = [](int part, int whole) { return whole == 0 ? 100.0 : 100.0 * part / whole; };
  fmt::print("\n{}: {} files\n", title, counts.files);
  fmt::print("  recipients found      {:>4} of {:>4}  {:5.1f} %\n", counts.found, counts.expected,
             percent(counts.found, counts.expected));
  fmt::print("  called hard, rightly  {:>4} of {:>4}  {:5.1f} %\n", counts.hard_right, counts.hard_called,
             percent(counts.hard_right, counts.hard_called));
  fmt::print("  hard ones called hard {:>4} of {:>4}  {:5.1f} %\n", counts.hard_right, counts.hard_expected,
             percent(counts.hard_right, counts.hard_expected));
  fmt::print("  feedback reports      {:>4} of {:>4}\n", counts.complaints_found, counts.complaints);
  fmt::print("  automatic replies     {:>4} of {:>4}\n", counts.replies_found, counts.replies);
  fmt::print("  not recognised        {:>4} of {:>4}\n", counts.unrecognised, counts.files);
}

bool has_delivery_status(const std::string& bytes) {
  return lower_case(bytes).find("content-type: message/delivery-status") != std::string::npos;
}

/// Microseconds for a mail, as the mean of many.
double time_of(const std::vector<std::string>& mails) {
  const auto begin = std::chrono::steady_clock::now();
  constexpr int rounds = 20;
  std::size_t read = 0;
  for (int i = 0; i < rounds; ++i) {
    for (const auto& mail : mails)
      read += bounce::read_bounce(mail) ? 1 : 0;
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  return read == 0 ? 0 : taken.count() / rounds / static_cast<double>(mails.size());
}

int measure(const std::filesystem::path& directory) {
  const auto expected = read_expected(directory / "expected.csv");
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".eml") files.insert(entry.path());
  Counts standard;
  Counts others;
  int unexpected = 0;
  std::vector<std::string> mails;
  for (const auto& path : files) {
    const auto name = path.filename().string();
    const auto bytes = read_all(path);
    const auto read = bounce::read_bounce(bytes);
    const auto found = expected.find(name);
    if (found == expected.end()) {
      if (read) ++unexpected;
      if (read) fmt::print("{:<30} was read, and is not in expected.csv\n", name);
      continue;
    }
    const bool is_standard = has_delivery_status(bytes);
    if (is_standard) mails.push_back(bytes);
    compare(name, found->second, read, is_standard, is_standard ? standard : others);
  }
  print_counts("with message/delivery-status", standard);
  print_counts("others", others);
  print_counts("all", sum_of(standard, others));
  fmt::print("\nread, and not in expected.csv: {}\n", unexpected);
  if (!mails.empty()) fmt::print("time for a mail with message/delivery-status: {:.0f} us\n", time_of(mails));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: measure_bounces DIRECTORY\n");
    return 2;
  }
  return measure(argv[1]);
}
