// DATA and BDAT, and what becomes of a mail that is whole.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "submission/conversation.hpp"

namespace mailroom::submission {
namespace {

Reply too_large(std::size_t most, bool is_last = false) {
  return {552, "5.3.4", fmt::format("a mail has at most {} bytes", most), is_last};
}

}  // namespace

bool Conversation::hold_body() {
  const auto size = data_.mail().size();
  const auto change = static_cast<std::ptrdiff_t>(size) - static_cast<std::ptrdiff_t>(held_);
  held_ = size;
  return change == 0 || service_.hold(change);
}

std::optional<Reply> Conversation::problem_of_data() const {
  if (!has_mail_) return replies::no_mail;
  if (recipient_count_ == 0) return replies::no_recipient;
  if (!service_.hold(0)) return replies::no_memory;
  return std::nullopt;
}

void Conversation::begin_data() {
  if (is_chunked_) return say(replies::has_chunks);
  if (const auto problem = problem_of_data()) return say(*problem);
  data_.begin(terms_.max_size);
  state_ = State::data;
  say(replies::go_on);
}

Conversation::Wish Conversation::take_data(std::string_view& bytes, TimePoint now) {
  const auto read = data_.read(bytes);
  if (read == DataReader::State::bare_line_end) {
    say(replies::bare_in_data);
    return wish_now();
  }
  if (data_.dropped() > terms_.max_size) {
    say(too_large(terms_.max_size, true));
    return wish_now();
  }
  if (!hold_body()) {
    // Nothing may be read as commands that was meant as data.
    say(replies::no_memory_within);
    return wish_now();
  }
  if (read == DataReader::State::more) return Wish::none;
  state_ = State::command;
  return finish_mail(now);
}

void Conversation::begin_chunk(std::string_view rest) {
  const auto chunk = parse_chunk_size(rest);
  if (!chunk) return say(replies::bad_chunk);
  if (chunk->size > 2 * terms_.max_size) return say(too_large(terms_.max_size, true));
  // A client may cut a mail into many; what it must not is to send none.
  if (chunk->size > 0) --commands_;
  if (!is_chunked_) data_.begin(terms_.max_size);
  // RFC 3030, section 2: the bytes of a chunk that is refused come all the same.
  if (!chunk_refusal_) chunk_refusal_ = problem_of_data();
  is_chunked_ = true;
  is_last_chunk_ = chunk->is_last;
  chunk_left_ = chunk->size;
  state_ = State::chunk;
}

Conversation::Wish Conversation::take_chunk(std::string_view& bytes, TimePoint now) {
  const auto part = bytes.substr(0, chunk_left_);
  if (!chunk_refusal_) data_.append(part);
  bytes.remove_prefix(part.size());
  chunk_left_ -= part.size();
  if (!hold_body()) {
    say(replies::no_memory_within);
    return wish_now();
  }
  if (chunk_left_ > 0) return Wish::none;
  state_ = State::command;
  wait_for_command(now);
  if (chunk_refusal_) {
    const auto refusal = *std::exchange(chunk_refusal_, std::nullopt);
    forget_mail();
    say(refusal);
  } else if (data_.dropped() > 0) {
    forget_mail();
    say(too_large(terms_.max_size));
  } else if (is_last_chunk_) {
    return finish_mail(now);
  } else {
    say(replies::chunk_ok);
  }
  return wish_now();
}

std::optional<Reply> Conversation::problem_of_bytes() const {
  if (data_.dropped() > 0) return too_large(terms_.max_size);
  if (data_.has_nul()) return replies::has_nul;
  if (is_chunked_ && !data_.has_crlf_only()) return replies::bare_in_data;
  return std::nullopt;
}

Conversation::Wish Conversation::finish_mail(TimePoint now) {
  wait_for_command(now);
  if (const auto problem = problem_of_bytes()) {
    forget_mail();
    say(*problem);
    return wish_now();
  }
  const auto terms = service_.terms_of(client_.role);
  auto made = submitted_mail(
      data_.mail(), {.role = client_.role,
                     .return_path = return_path_,
                     .recipients = recipients_,
                     .peer = client_.peer,
                     .hello = hello_,
                     .host = terms_.host,
                     .with = with_protocol(is_extended_, client_.is_secure, client_.needs_login, is_utf8_),
                     .now = service_.now(),
                     .held_until = held_until_,
                     .takes_options = terms.header_options,
                     .senders = terms.senders,
                     .keeps_return_path = terms.keeps_return_path,
                     .may_replace_local_from = had_local_from_,
                     .local_from = terms_.local_from,
                     .random = service_.random()});
  if (const auto* refusal = std::get_if<Reply>(&made)) {
    forget_mail();
    say(*refusal);
    return wish_now();
  }
  mail_ = std::get<SubmittedMail>(std::move(made));
  state_ = State::waiting;
  // The bytes are there once again from here on; their place in the memory stays until the mail is stored.
  data_.take();
  return Wish::store;
}

}  // namespace mailroom::submission
