// What follows DATA: where the mail ends, and what is in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mailroom::submission {

/// Takes the text of a mail (RFC 5321, section 4.5.2) in pieces that are cut anywhere, and removes the dots
/// that were doubled. The one end is CRLF . CRLF: a CR or a LF alone is never a part of a mail, since a
/// server that takes it for a line end would see another mail than this one (SMTP smuggling).
class DataReader {
 public:
  enum class State { more, done, bare_line_end };

  /// A mail of at most `most` bytes begins. What is beyond is counted and dropped.
  void begin(std::size_t most);
  /// Removes from `bytes` what it has read. After `done` and `bare_line_end` begin() must come first.
  State read(std::string_view& bytes);
  /// Appends bytes that are not read by lines: a chunk of BDAT.
  void append(std::string_view bytes);
  /// True if what append() has taken has no line end but CRLF.
  bool has_crlf_only() const;

  const std::string& mail() const { return mail_; }
  std::string take() { return std::move(mail_); }
  std::size_t dropped() const { return dropped_; }
  bool has_nul() const { return has_nul_; }

 private:
  enum class At { line_start, dot, dot_cr, line, cr };

  /// Takes the bytes of a line up to its CR; false at a LF alone.
  bool read_line(std::string_view& bytes);

  std::string mail_;
  std::size_t most_ = 0;
  std::size_t dropped_ = 0;
  At at_ = At::line_start;
  bool has_nul_ = false;
};

}  // namespace mailroom::submission
