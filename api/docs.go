package api

import (
	"bytes"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// page lists every call. It needs nothing from anywhere else.
var page = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} API</title><meta name="viewport" content="width=device-width">
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h2{margin-top:2.5rem;font:600 1rem ui-monospace,monospace}h2 b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #ddd}
code{font:14px ui-monospace,monospace}
</style></head><body>
<h1>{{.Title}}</h1><p>{{.Description}}</p>
<p>Calls carry <code>Authorization: Bearer csk_…</code>, made by <code>bot keys create</code>. Errors are problem documents with a stable <code>code</code>.
The whole description is at <a href="/openapi.json">/openapi.json</a>.</p>
{{range .Calls}}<h2><b>{{.Method}}</b> {{.Path}}</h2><p>{{.Summary}}. {{.Description}}</p>
{{if .Fields}}<table><tr><th>where</th><th>name</th><th></th></tr>{{range .Fields}}<tr><td>{{.In}}</td><td><code>{{.Name}}</code></td><td>{{.Doc}}</td></tr>{{end}}</table>{{end}}
{{end}}</body></html>
`))

// nullable describes the objects that an answer may have null in the place of; the framework cannot say so of a reference.
func nullable(spec *huma.OpenAPI) {
	for name, members := range map[string][]string{"Offer": {"closed_by"}, "OfferAnswer": {"closed_by"}, "Operation": {"offer"}} {
		schema := spec.Components.Schemas.Map()[name]
		if schema == nil {
			continue
		}
		for _, m := range members {
			if was := schema.Properties[m]; was != nil {
				schema.Properties[m] = &huma.Schema{AnyOf: []*huma.Schema{was, {Type: "null"}}}
			}
		}
	}
}

type docCall struct {
	Method, Path, Summary, Description string
	Fields                             []docField
}

type docField struct{ In, Name, Doc string }

// docs renders the page once, from the same description that /openapi.json serves.
func docs(spec *huma.OpenAPI) []byte {
	data := struct {
		Title, Description string
		Calls              []docCall
	}{Title: spec.Info.Title, Description: spec.Info.Description}
	for path, item := range spec.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			c := docCall{Method: op.Method, Path: path, Summary: op.Summary, Description: op.Description}
			for _, p := range op.Parameters {
				c.Fields = append(c.Fields, docField{p.In, p.Name, p.Description})
			}
			c.Fields = append(c.Fields, bodyFields(spec, op)...)
			data.Calls = append(data.Calls, c)
		}
	}
	slices.SortFunc(data.Calls, func(a, b docCall) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		return []byte(err.Error())
	}
	return b.Bytes()
}

func bodyFields(spec *huma.OpenAPI, op *huma.Operation) []docField {
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return nil
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema != nil && schema.Ref != "" {
		schema = spec.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return nil
	}
	var out []docField
	for name, p := range schema.Properties {
		out = append(out, docField{"body", name, p.Description})
	}
	slices.SortFunc(out, func(a, b docField) int { return strings.Compare(a.Name, b.Name) })
	return out
}
