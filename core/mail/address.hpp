// The addresses and mailboxes of a mail, checked so that no relay can misread them, and the refusal of one
// that cannot be mailed.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mailroom::mail {

/// Why a value must not become part of a mail, in plain words that quote nothing secret: `the local part has
/// 65 octets, at most 64 are allowed`. A row that cannot be mailed is a result, not an error.
struct Refusal {
  std::string reason;

  bool operator==(const Refusal&) const = default;
};

/// An address that is safe in an SMTP command, in a header and on a relay's command line.
struct Address {
  std::string local;   ///< a dot-atom or a quoted string of printable UTF-8, without a leading hyphen
  std::string domain;  ///< a host name in ASCII: A-labels for an international one

  std::string text() const { return local + "@" + domain; }
  bool operator==(const Address&) const = default;
};

/// An address, and the name that a reader sees; the name may be empty.
struct Mailbox {
  std::string name;
  Address address;

  bool operator==(const Mailbox&) const = default;
};

/// Reads `local@domain` (RFC 5321, without address literals). Converts an international domain to A-labels,
/// puts quotes around a local part whose dots need them, and leaves everything else as it is.
std::variant<Address, Refusal> parse_address(std::string_view text);

/// Why parse_mailbox() refuses several.
constexpr std::string_view several_mailboxes = "it names more than one mailbox";

/// Reads `Name <local@domain>`, `"Name" <local@domain>`, `<local@domain>` or `local@domain`. Refuses several.
std::variant<Mailbox, Refusal> parse_mailbox(std::string_view text);

/// Reads one or more of these with commas between them. A comma without an address before it belongs to a
/// name: `Doe, Jane <jane@app.example>` is one. mailroom_mailboxes_of() does the same in SQL.
std::variant<std::vector<Mailbox>, Refusal> parse_mailboxes(std::string_view text);

/// The address in what may be a mailbox, as it was typed: `BOB@x.example` of `Bob <BOB@x.example>`. Other
/// text stays as it is, without blanks around it.
std::string address_of_mailbox(std::string_view text);

/// The one form of an address that can be written in several, by which addresses are compared: without quotes
/// and backslashes that it does not need, in lower case. mailroom_canonical() makes the same in SQL.
std::string canonical_text(const Address& address);

/// The address with an international domain as people read it, in Unicode.
std::string international_text(const Address& address);

/// True if only a relay that offers SMTPUTF8 (RFC 6531) can take the address.
bool needs_smtputf8(const Address& address);

}  // namespace mailroom::mail
