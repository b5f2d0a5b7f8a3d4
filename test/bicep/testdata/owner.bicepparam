// What the owner of an existing account gives.
using '../../../deploy/azure/cosmos.bicep'

param account = 'NAME'
param database = 'invoices'
param principals = ['00000000-0000-4000-8000-000000000004']
