// A language is a row. The words name no sender and no address: whoever has the link may be anybody.

#include "webhook/subscription_words.hpp"

#include <algorithm>
#include <array>

namespace mailroom::webhook {
namespace {

constexpr std::array<SubscriptionWords, 12> all{{
    {"en", "Unsubscribe", "Do you want no more mails of “{}”?", "Unsubscribed",
     "You get no more mails of “{}”.", "Choose which mails you get", "Your mails", "Which mails do you want?",
     "Save", "Saved."},
    {"de", "Abbestellen", "Möchten Sie keine Mails „{}“ mehr?", "Abbestellt",
     "Sie erhalten keine Mails „{}“ mehr.", "Auswählen, welche Mails Sie erhalten", "Ihre Mails",
     "Welche Mails möchten Sie?", "Speichern", "Gespeichert."},
    {"fr", "Se désabonner", "Ne plus recevoir les e-mails « {} » ?", "Désabonnement effectué",
     "Vous ne recevrez plus les e-mails « {} ».", "Choisir les e-mails à recevoir", "Vos e-mails",
     "Quels e-mails souhaitez-vous ?", "Enregistrer", "Enregistré."},
    {"es", "Darse de baja", "¿No quiere recibir más correos de «{}»?", "Baja realizada",
     "Ya no recibirá correos de «{}».", "Elegir qué correos recibir", "Sus correos",
     "¿Qué correos desea recibir?", "Guardar", "Guardado."},
    {"it", "Annulla iscrizione", "Non vuole più ricevere le e-mail «{}»?", "Iscrizione annullata",
     "Non riceverà più le e-mail «{}».", "Scegliere quali e-mail ricevere", "Le sue e-mail",
     "Quali e-mail desidera ricevere?", "Salva", "Salvato."},
    {"nl", "Afmelden", "Wilt u geen mails van ‘{}’ meer?", "Afgemeld", "U ontvangt geen mails van ‘{}’ meer.",
     "Kiezen welke mails u ontvangt", "Uw mails", "Welke mails wilt u ontvangen?", "Opslaan", "Opgeslagen."},
    {"pt", "Cancelar inscrição", "Não quer receber mais e-mails de “{}”?", "Inscrição cancelada",
     "Não receberá mais e-mails de “{}”.", "Escolher que e-mails receber", "Os seus e-mails",
     "Que e-mails deseja receber?", "Guardar", "Guardado."},
    {"pl", "Zrezygnuj", "Czy nie chcesz już otrzymywać wiadomości „{}”?", "Zrezygnowano",
     "Nie będziesz już otrzymywać wiadomości „{}”.", "Wybierz, które wiadomości otrzymujesz",
     "Twoje wiadomości", "Które wiadomości chcesz otrzymywać?", "Zapisz", "Zapisano."},
    {"sv", "Avregistrera", "Vill du inte ha fler mejl om ”{}”?", "Avregistrerad",
     "Du får inga fler mejl om ”{}”.", "Välj vilka mejl du får", "Dina mejl", "Vilka mejl vill du ha?",
     "Spara", "Sparat."},
    {"da", "Afmeld", "Vil du ikke have flere mails om »{}«?", "Afmeldt", "Du får ikke flere mails om »{}«.",
     "Vælg, hvilke mails du får", "Dine mails", "Hvilke mails vil du have?", "Gem", "Gemt."},
    {"cs", "Odhlásit odběr", "Nechcete už dostávat e-maily „{}“?", "Odběr odhlášen",
     "E-maily „{}“ už nebudete dostávat.", "Vybrat, které e-maily dostávat", "Vaše e-maily",
     "Které e-maily chcete dostávat?", "Uložit", "Uloženo."},
    {"ja", "配信停止", "「{}」のメールの配信を停止しますか？", "配信を停止しました",
     "「{}」のメールは今後届きません。", "受け取るメールを選ぶ", "メールの設定",
     "受け取りたいメールを選んでください", "保存", "保存しました。"},
}};

}  // namespace

const SubscriptionWords* find_subscription_words(std::string_view language) {
  const auto* const found = std::ranges::find(all, language, &SubscriptionWords::language);
  return found == all.end() ? nullptr : found;
}

const SubscriptionWords& default_subscription_words() {
  return all.front();
}

}  // namespace mailroom::webhook
