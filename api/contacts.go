package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign/countersign/gate"
	"github.com/countersign/countersign/offers"
	"github.com/countersign/countersign/people"
	"github.com/countersign/countersign/said"
)

// Limits of one contact. A call takes as many as its body holds; an account has at most offers.MaxContacts.
const (
	maxContactID        = 200 // bytes
	maxContactAliases   = 20
	maxContactAddresses = 20
)

type contact struct {
	ID        string   `json:"id" doc:"the connector's own stable id" example:"crm-17"`
	Name      string   `json:"name" doc:"what people call them; invisible characters are dropped, at most 60 are kept"`
	Aliases   []string `json:"aliases,omitempty" doc:"other names, at most 20"`
	Addresses []string `json:"addresses" doc:"exact addresses, at most 20: an email address, +E.164, sms:, whatsapp:, @handle, #channel"`
}

type contactsRequest struct {
	Contacts []contact `json:"contacts"`
	Merge    bool      `json:"merge,omitempty" doc:"put these and leave all others; left out: these are all there are"`
}

type contactsOutput struct {
	Body struct {
		Count    int       `json:"count" doc:"how many contacts the account has"`
		Contacts []contact `json:"contacts" doc:"by id"`
	}
}

type contactsPut struct {
	Body struct {
		Count int `json:"count" doc:"how many contacts the account has by now"`
	}
}

// Whoever names contacts names recipients, so that an agent's key never does.
var (
	connectors       = []people.Scope{people.ScopeConnector}
	connectorOrOwner = []people.Scope{people.ScopeConnector, people.ScopeOwner}
)

func (s *server) contacts() {
	register(s, huma.Operation{
		OperationID: "put-contacts", Method: http.MethodPut, Path: "/v1/contacts", Summary: "Replace or merge contacts", Tags: []string{"contacts"},
		RequestBody: described[contactsRequest](s.api),
		Description: "Whom an owner's words can name. A permission pins addresses when it is given, so that a contact that is edited later widens nothing.",
	}, connectors, s.putContacts)
	register(s, huma.Operation{
		OperationID: "list-contacts", Method: http.MethodGet, Path: "/v1/contacts", Summary: "List contacts", Tags: []string{"contacts"},
	}, connectorOrOwner, func(ctx context.Context, _ *struct{}) (*contactsOutput, error) {
		list, err := s.Store.Contacts(ctx, key(ctx).AccountID)
		if err != nil {
			return nil, err
		}
		out := &contactsOutput{}
		out.Body.Count, out.Body.Contacts = len(list), make([]contact, 0, len(list))
		for _, c := range list {
			out.Body.Contacts = append(out.Body.Contacts, contact(c))
		}
		return out, nil
	})
}

func (s *server) putContacts(ctx context.Context, in *rawInput) (*contactsPut, error) {
	var req contactsRequest
	if _, err := body(in.RawBody, &req); err != nil {
		return nil, err
	}
	list, err := cleanContacts(req.Contacts)
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, "contact_invalid", err.Error())
	}
	n, err := s.Store.PutContacts(ctx, key(ctx).AccountID, list, req.Merge)
	if errors.Is(err, offers.ErrTooManyContacts) {
		return nil, problem(http.StatusUnprocessableEntity, "too_many_contacts", fmt.Sprintf("An account has at most %d contacts; nothing was changed.", offers.MaxContacts))
	}
	if err != nil {
		return nil, err
	}
	out := &contactsPut{}
	out.Body.Count = n
	return out, nil
}

// cleanContacts checks a list whole. Names are cleaned, addresses are never repaired: one that is not exactly one plain
// address refuses the list. Errors say where, never what.
func cleanContacts(in []contact) ([]said.Contact, error) {
	out := make([]said.Contact, 0, len(in))
	ids := make(map[string]bool, len(in))
	for i, c := range in {
		at := func(what string) error { return fmt.Errorf("Contact %d: %s.", i, what) } //nolint:staticcheck // it is the sentence of a problem document
		clean := said.Contact{ID: c.ID, Name: people.CleanName(c.Name), Aliases: []string{}, Addresses: []string{}}
		switch {
		case c.ID == "" || len(c.ID) > maxContactID || strings.ContainsFunc(c.ID, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
			return nil, at("id must be 1 to 200 bytes that can be printed")
		case ids[c.ID]:
			return nil, at("its id stands twice in the list")
		case !named(clean.Name):
			return nil, at("name has no letter or digit")
		case len(c.Aliases) > maxContactAliases:
			return nil, at("more than 20 aliases")
		case len(c.Addresses) > maxContactAddresses:
			return nil, at("more than 20 addresses")
		}
		ids[c.ID] = true
		for _, a := range c.Aliases {
			if a = people.CleanName(a); !named(a) {
				return nil, at("an alias has no letter or digit")
			}
			if !slices.Contains(clean.Aliases, a) {
				clean.Aliases = append(clean.Aliases, a)
			}
		}
		for _, a := range c.Addresses {
			canonical := gate.CanonicalAddress(a)
			if canonical == "" {
				return nil, at("an address is not exactly one plain address")
			}
			if !slices.Contains(clean.Addresses, canonical) {
				clean.Addresses = append(clean.Addresses, canonical)
			}
		}
		out = append(out, clean)
	}
	return out, nil
}

func named(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
