// The table of words, in order: the first rule that fits decides.

#include "bounce/reason_rules.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"
#include "bounce/word_patterns.hpp"

namespace mailroom::bounce {
namespace {

/// Phrases that stand for a reason, as WordPatterns takes them.
struct Rules {
  BounceReason reason;
  std::string_view patterns;
};

// What is not about the recipient comes first: it may quote words that elsewhere say that there is none.
constexpr Rules specific_rules[] = {
    // The address may exist, or not: who may write to it is all that is said.
    {BounceReason::policy,
     "groups.google.com|resolver.rst|permission to post|permissions to post|may not have permission|not have permission|don't have permission|"
     "sufficient permission|permission to send|notauthorized|authrequired|"
     "delivery to this address is restricted|delivery to this group is restricted|"
     "only accepts messages from|only accept messages from|only allows messages from|"
     "isn't accepting messages from|not accepting messages from|only accepts mail from|"
     "allowed to post|not a member of|members only|members-only|subscribers only|moderated group|"
     "keine berechtigung|nicht berechtigt|pas autorisé|pas l'autorisation|no tiene permiso|não tem permissão|"
     "non hai l'autorizzazione|non dispone dell'autorizzazione|geen toestemming|nie masz uprawnień|"
     "нет разрешения|не имеете прав|нет прав|投稿|権限|权限|權限|권한"},
    // A state of the account itself, below, is another matter.
    {BounceReason::user_unknown,
     "mailbox is inactive|user not active|user is not active|not an active address|no active account|"
     "no active mailbox|address is inactive|address inactive|address is not active|address not active|"
     "address is no longer active|address no longer active|no longer active|that domain or user isn't in|"
     "badrcptto|badrecipientto|badrecipient|validrcptto|invalid/unknown|unknown/invalid"},
    {BounceReason::network,
     "host not found, try again|temporary failure in name resolution|name server*tim|servfail|"
     "host name lookup failure|name server reply|temporary lookup failure|no route to host|network is unreachable|"
     "network unreachable|network error|connection refused|connection timed out|connection timeout|"
     "connection reset|connection closed|connection dropped|connection was|connection lost|"
     "lost connection|conversation with*timed out|operation timed out|server did not respond|"
     "timed out while|cannot connect|could not connect|unable to connect|failed to connect|"
     "couldn't connect|wasn't able to establish an smtp connection|connect to*timed out|too many hops|"
     "hop count|mail loop|forwarding loop|loop detected|loop broken|loops back|looping|maximum allowed times|tls handshake|tls is required|"
     "starttls|tls negotiation"},
    {BounceReason::expired,
     "retry timeout exceeded|retry time not reached|delivery time expired|message expired|"
     "envelope expired|expired in queue|has been in the queue|been in queue|queue too long|"
     "in the queue too long|delivery timed out|message timed out|delivery expired|"
     "unable to deliver this message after|could not be delivered for|could not be delivered within|"
     "not been delivered for|too old|will keep trying|will continue|not yet been delivered|still being retried|"
     "delivery temporarily suspended|message is delayed|has been delayed"},
    {BounceReason::authentication,
     "spf|sender policy framework|dmarc|dkim|unauthenticated|not authenticated|authentication check|"
     "authentication fail|fails authentication|pass authentication|sender id"},
    {BounceReason::blocked,
     "client host*rejected|helo command rejected|cannot find your hostname|cannot find your reverse|"
     "cannot resolve your|can't resolve your|reverse dns|reverse lookup|reverse host|rdns|ptr|no ptr|"
     "fcrdns|mismatches client ip|helo name|invalid helo|bad helo|rbl|dnsbl|blacklist|black list|"
     "blocklist|block list|blocked using|denylist|spamhaus|spamcop|sorbs|barracuda*reputation|"
     "senderbase|senderscore|reputation|your ip|sending ip|ip address*block|ip address*reject|"
     "ip address*list|blocked ip|ip blocked|your host*block|your server*block|your network|"
     "access from ip|banned|does not accept mail from|doesn't accept mail from|not accept mail from|"
     "not accepting mail from|not accept email from|will not accept delivery|dynamic ip|dynamic address|"
     "residential|dial-up|dialup"},
    {BounceReason::sender_rejected,
     "sender address|sender domain|domain of sender|sender verif|sender rejected|sender denied|"
     "sender refused|sender not|sender is not|sender unknown|sender does not|sender's|invalid sender|"
     "unknown sender|bad sender|unresolvable sender|verify sender|verify the sender|envelope sender|"
     "envelope from|from address|return path|return-path|mail from*not|mail from*rejected|"
     "mail from*denied|mail from*invalid|not allowed to send|not authorized to send|"
     "not permitted to send|backscatter|your domain|callout"},
    {BounceReason::relaying_denied,
     "relaying denied|relay access denied|relay denied|relaying not|relay not|relaying is|relaying mail|"
     "relaying disallowed|relaying prohibited|not permitted to relay|not allowed to relay|"
     "not configured to relay|unable to relay|cannot relay|can't relay|do not relay|don't relay|"
     "won't relay|not relay|no relay|relay prohibited|rcpthosts|smtp auth|authentication required|"
     "authentication is required|must authenticate|must be authenticated|mail server not configured for"},
    {BounceReason::rate_limited,
     "receiving mail at a rate|receiving mail too quickly|rate limit|ratelimit|rate*exceeded|"
     "exceed*rate|throttl|too many|too much mail|too fast|excessive|connection frequency|"
     "connection limit|connections exceed|max connection|maximum connection|concurrent|sending limit|"
     "sending quota|daily limit|hourly|per hour|per day|greylist|graylist|grey list|unusual rate|"
     "frequency limit"},
    {BounceReason::message_too_big,
     "message size|message too|message is too|message length exceed|message exceed|too large|too big|"
     "size limit|size exceed|exceed*maximum size|exceed*message size|exceeds size|larger than|"
     "max message size|mail size|maximum message size"},
    {BounceReason::mailbox_full,
     "mailbox full|mailbox is full|mailbox*full|mail box full|mailfolder is full|inbox*full|"
     "full mailbox|account*full|user is full|over quota|overquota|over the quota|over*quota|quota|"
     "out of storage|storage*exceed|exceed*storage|storage limit|no storage|insufficient disk|"
     "insufficient space|insufficient storage|not enough space|not enough disk|not enough storage|"
     "no space|no disk space|disk full|disk is full|mailbox size|mailbox exceed|mailbox limit|"
     "mailbox has exceeded|mailbox too large|storedrv*quota|enough space|boîte*pleine|boite*pleine|"
     "postfach*voll|mailbox ist voll|speicherplatz|buzón*llen|buzon*llen|cuota|casella*piena|"
     "caixa*cheia|щик*переполнен|квот|容量|已满"},
    {BounceReason::suspended,
     "disabled|suspended|deactivated|inactive|not active|not activated|inactivity|temporary locked|"
     "temporarily locked|is locked|account locked|mailbox locked|has been locked|is frozen|"
     "account*expired|on hold|temporarily unavailable|temporarily inactive|discontinued|account*blocked|"
     "mailbox*blocked|archived recipient|destinataire archiv|user is terminated|"
     "delivery error: dd*no longer valid|désactivé|deaktiviert|gesperrt"},
    {BounceReason::has_moved,
     "has moved|user moved|mailbox moved|address has changed|address changed|has been replaced by|"
     "no longer on server|no longer on this server|no longer on our|new address|forwarding address|"
     "no longer with|no longer works|no longer employed|no longer at this|has left the|left the company"},
    {BounceReason::filtered,
     "user does not accept|recipient does not accept|mailbox does not accept|user doesn't accept"},
    {BounceReason::not_accept,
     "nullmx|null mx|null-mx|null*mx record|mx record*null|name server: .: host not found|"
     "mail receiving disabled|no mx record found|no route for current request|not accept any e-mail|not accept any email|does not accept mail|does not accept email|does not accept e-mail|"
     "doesn't accept mail|doesn't accept email|doesn't accept any|doesn't receive|does not accept any mail|does not accept messages|"
     "does not receive mail|no mail is accepted|never accepts mail|smtp service not available here"},
    {BounceReason::host_unknown,
     "host unknown|unknown host|unknown domain name|domain must exist|domain*is unknown|domain may not exist|"
     "host not found|hostname not found|host name not found|domain not found|unknown domain|domain unknown|"
     "domain is unknown|domain*not exist|domain*n't exist|host*not exist|host*n't exist|"
     "domain name*not found|domain*not found|no such domain|no such host|nxdomain|"
     "unrouteable mail domain|unroutable mail domain|unrouteable domain|unroutable domain|illegal host|"
     "illegal domain|invalid domain|invalid host|domain is invalid|domain*is not valid|bad domain|"
     "bad destination host|bad destination system|mx records point to non-existent|"
     "no mail hosts for domain|no mail servers appear to exist|no mx|couldn't find any host|could not find any host|"
     "couldn't find a mail exchanger|name or service not known|no address associated with|"
     "non-existent domain|nonexistent domain|non-existent host|domain has no|dns hard error|"
     "dns name does not exist|dns domain*does not exist|domaine*inconnu|domaine*inexistant|"
     "dominio*no existe"},
    {BounceReason::user_unknown,
     "user unknown|unknown user|user is unknown|user not known|unknown recipient|recipient unknown|"
     "recipient is unknown|recipient not known|recipients unknown|unknown address|address unknown|"
     "address is unknown|unknown mailbox|mailbox unknown|unknown account|account unknown|"
     "account is unknown|unknown local|unknown email|unknown or|unknown to us|unknown in|"
     "not a known user|not known at this|user*not found|recipient*not found|recipnotfound|resolver.adr|"
     "mailbox*not found|account*not found|address*not found|name not found|email*not found|"
     "e-mail*not found|could not be found|couldn't be found|wasn't found at|cannot be found|"
     "can't be found|no such user|no such recipient|no such mailbox|no such address|no such account|"
     "no such person|no such email|no such e-mail|no such mail|no such local|no such login|"
     "no such customer|no such subscriber|no such member|no such name|no such id|no such destination|"
     "no mailbox|no user|no account|no local mailbox|no email address|there is no such|user*not exist|"
     "user*n't exist|mailbox*not exist|mailbox*n't exist|account*not exist|account*n't exist|"
     "address*not exist|address*n't exist|recipient*not exist|recipient*n't exist|customer*not exist|"
     "email*not exist|email*n't exist|name*not exist|does not exist here|doesn't exist here|"
     "does not exist on|no longer exist|no longer valid|no longer in use|no longer available|"
     "no longer accept|nonexistent|non-existent|non existent|not existing|nosuchuser|invalid recipient|"
     "recipient invalid|recipient is invalid|invalid mailbox|mailbox invalid|invalid address|"
     "address invalid|address is invalid|invalid user|invalid email|invalid e-mail|invalid destination|"
     "invalid local part|not a valid recipient|not a valid mailbox|not a valid user|not a valid address|"
     "not a valid email|not valid recipient|recipient*not valid|address*not valid|user*not valid|"
     "bad address|bad destination mailbox|bad recipient|bad mailbox|bad-mailbox|undeliverable address|"
     "unrouteable address|unroutable address|not listed in|not in our|not in the directory|"
     "not in directory|does not have a*account|doesn't have a*account|does not have an account|"
     "doesn't have an account|has no mailbox|has no account|is not a user|not our customer|"
     "is not a mailbox|user not local|user not here|user not listed|mailbox not here|not a local|"
     "requested action not taken: mailbox unavailable|mailbox unavailable or access denied|"
     "recipient address rejected: access denied|5.1.0 address rejected|address not present|not present in|"
     "mailbox not present|can't accept user|no one at this address|missing home directory|"
     "rejected recipients|no valid recipients|addresses were unknown|no mail box|unknown virtual|"
     "illegal alias|unknown alias|invalid final delivery|possibly incorrect|not a valid destination|"
     "account unavailable|address*unavailable: user|mailbox is unavailable|recipient is not accepted|"
     "recipient not ok|not ok recipient|wrong or no longer|not recognised|not recognized|name directory|"
     "recipient name is not|does not exist|doesn't exist|not exist at|not exist here|"
     "nessun utente|no existe|dicha persona|nicht im domino|nicht im*verzeichnis|nicht vorhanden|"
     "introuvable|n'a pas été trouv|n'a pu être trouv|n'existe pas|n'est pas répertori|"
     "no se encontr|no se ha encontrado|no se pudo encontrar|no figura en|non è elencat|non elencat|inexistant|non è stato trovato|"
     "non è stata trovata|inesistente|não está listado|não foi encontrado|não foi possível encontrar|não existe|"
     "niet gevonden|niet vermeld|bestaat niet|hittades inte|finns inte|findes ikke|blev ikke fundet|"
     "finnes ikke|ble ikke funnet|ei löydy|ei löytynyt|nebyl nalezen|nebyla nalezena|neexistuje|"
     "nie znaleziono|nie istnieje|nem található|nem létezik|bulunamadı|"
     "не найден|не существует|не значится|找不到|不存在|查无此|찾을 수 없|존재하지 않|destinataire inconnu|utilisateur inconnu|"
     "destinataire invalide|adresse*inconnu|adresse*invalide|adresse*existe pas|empfänger unbekannt|"
     "unbekannter empfänger|empfänger*existiert nicht|adresse*existiert nicht|benutzer unbekannt|"
     "usuario desconocido|usuario*no existe|dirección*no existe|destinatario*no existe|"
     "destinatario sconosciuto|utente sconosciuto|destinatário*não existe|usuário*não existe|"
     "usuário desconhecido|ет такого пользователя|ользователь*не найден|щик*не существует|"
     "щик*не найден|用户不存在|收件人不存在|non répertorié|no se encuentra en|nicht gefunden|non trovato|não encontrado|見つかりません|存在しません|存在しない|宛先不明"},
};

constexpr Rules vague_rules[] = {
    {BounceReason::virus, "virus|malware|infected|phish|trojan|harmful"},
    {BounceReason::spam,
     "spam|junk|ube|uce|unsolicited|bulk|suspicious|content rejected|message content|considered as|"
     "high probability|unwanted"},
    {BounceReason::content,
     "duplicate header|header|attachment|content|malformed|rfc 5322|rfc5322|rfc 2822|bare lf|mime|8bit|"
     "8-bit|charset|line too long|message-id|subject"},
    {BounceReason::filtered,
     "recipient address rejected|recipient rejected|recipient refused|recipient not|address rejected|"
     "not accepting|refuses to accept|only accept|restricted|mailbox unavailable|mailbox not available|"
     "user reject|rejected by user|rejected by recipient"},
    {BounceReason::policy,
     "policy|policies|prohibited|not allowed|not authorized|not authorised|unauthorized|access denied|"
     "permission|denied|refused|not permitted|not accepted|security|administrative|forbidden|blocked|"
     "rejected"},
    {BounceReason::system,
     "system error|internal error|local error|server error|configuration error|misconfigur|"
     "transaction failed|service unavailable|service not available|service currently unavailable|"
     "try again|try later|temporary|temporarily|temporarly|syntax error|protocol error|"
     "unknown mailer error|mailer error|resource|local problem|cannot open|unable to|unexpected|"
     "bad sequence|command"},
};

/// What servers say before the words that matter, of whatever reason.
constexpr std::array<std::string_view, 3> empty_phrases{"unknown address error", "other mail system problem",
                                                        "other address status"};

/// Rules that are ready to be searched for.
struct Search {
  BounceReason reason;
  WordPatterns patterns;
};

template <std::size_t size>
std::vector<Search> searches_of(const Rules (&table)[size]) {
  std::vector<Search> searches;
  for (const auto& rules : table)
    searches.push_back({rules.reason, WordPatterns(rules.patterns)});
  return searches;
}

const std::vector<Search>& specific_searches() {
  static const auto searches = searches_of(specific_rules);
  return searches;
}

BounceReason first_reason(const std::vector<Search>& searches, std::string_view text) {
  const SearchedWords words(text);
  const auto found = std::find_if(searches.begin(), searches.end(),
                                  [&](const Search& search) { return search.patterns.fit(words); });
  return found == searches.end() ? BounceReason::undetermined : found->reason;
}

/// `550`, `550-`, `550-5.1.1`, `5.1.1`, `<<<`
bool is_code(std::string_view word) {
  return word.find_first_not_of("0123456789.-<>#") == std::string_view::npos;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string comparable_words(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n\f\v";
  std::string words;
  words.reserve(text.size());
  for (std::size_t from = text.find_first_not_of(spaces); from != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(spaces, from), text.size());
    const auto word = text.substr(from, end - from);
    if (word.find('@') == std::string_view::npos && !is_code(word)) {
      if (!words.empty()) words += ' ';
      words += word;
    }
    from = text.find_first_not_of(spaces, end);
  }
  words = lower_case(words);
  replace_all(words, "\xe2\x80\x99", "'");
  for (const auto phrase : empty_phrases)
    replace_all(words, phrase, "");
  return words;
}

BounceReason reason_of_words(std::string_view words) {
  return first_reason(specific_searches(), words);
}

bool words_say(BounceReason reason, std::string_view text) {
  const SearchedWords words(text);
  const auto& searches = specific_searches();
  return std::any_of(searches.begin(), searches.end(), [&](const Search& search) {
    return search.reason == reason && search.patterns.fit(words);
  });
}

BounceReason reason_of_vague_words(std::string_view words) {
  static const auto searches = searches_of(vague_rules);
  return first_reason(searches, words);
}

}  // namespace mailroom::bounce
