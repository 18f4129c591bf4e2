// A part has a stretch of the body of the whole, so mails that are to stay together are first put in order.

#include "carriers/http/parts.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom::http {
namespace {

std::string sender_of(const delivery::PackedMail& mail) {
  return lower_case(mail.envelope.author);
}

/// The mails of each sender after one another, in the order in which the senders come first.
delivery::Message in_order_of_senders(const delivery::Message& message, std::deque<std::string>& bytes) {
  struct Placed {
    std::size_t sender;
    std::size_t mail;
    std::size_t at;
  };
  std::vector<std::string> senders;
  std::vector<Placed> places;
  std::size_t at = 0;
  for (std::size_t i = 0; i < message.mails.size(); ++i) {
    const auto sender = sender_of(message.mails[i]);
    const auto found = std::ranges::find(senders, sender);
    places.push_back({static_cast<std::size_t>(found - senders.begin()), i, at});
    if (found == senders.end()) senders.push_back(sender);
    at += message.mails[i].size;
  }
  std::ranges::stable_sort(places, {}, &Placed::sender);
  auto ordered = message;
  ordered.mails.clear();
  auto& body = bytes.emplace_back();
  body.reserve(message.body.size());
  for (const auto& place : places) {
    const auto& mail = message.mails[place.mail];
    ordered.mails.push_back(mail);
    body.append(message.body.substr(place.at, mail.size));
  }
  ordered.body = body;
  return ordered;
}

/// How many mails from `begin` on belong together.
std::size_t together_from(const delivery::Message& message, std::size_t begin, bool by_sender) {
  if (!by_sender) return 1;
  std::size_t end = begin + 1;
  while (end < message.mails.size() && sender_of(message.mails[end]) == sender_of(message.mails[begin]))
    ++end;
  return end - begin;
}

}  // namespace

bool is_of_one_sender(const delivery::Message& message) {
  return std::ranges::all_of(
      message.mails, [&](const auto& mail) { return sender_of(mail) == sender_of(message.mails.front()); });
}

std::vector<delivery::Message> parts_of(const delivery::Message& message, bool by_sender,
                                        std::deque<std::string>& bytes) {
  constexpr std::size_t parts = 4;
  const auto size = (message.mails.size() + parts - 1) / parts;
  const auto whole = by_sender ? in_order_of_senders(message, bytes) : message;
  std::vector<delivery::Message> own;
  std::size_t at = 0;
  for (std::size_t i = 0; i < whole.mails.size();) {
    const auto count = together_from(whole, i, by_sender);
    if (own.empty() || own.back().mails.size() + count > size) {
      own.push_back(whole);
      own.back().mails.clear();
      own.back().tokens.clear();
      own.back().body = whole.body.substr(at, 0);
    }
    auto& part = own.back();
    for (const auto end = i + count; i < end; ++i) {
      part.mails.push_back(whole.mails[i]);
      part.tokens.push_back(whole.mails[i].token);
      part.body = {part.body.data(), part.body.size() + whole.mails[i].size};
      at += whole.mails[i].size;
    }
  }
  for (auto& part : own) {
    if (part.mails.size() > 1) continue;
    part.envelope = part.mails.front().envelope;
    part.mails.clear();
  }
  return own;
}

}  // namespace mailroom::http
